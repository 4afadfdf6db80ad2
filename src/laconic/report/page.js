// Tables whose columns have no room are stacked, a list a row, for as long as they have none.
const fit = box => {
  const shown = box.firstElementChild;
  shown.classList.remove("stacked");
  shown.classList.toggle("stacked", box.scrollWidth > box.clientWidth);
};
const fitAll = () => document.querySelectorAll(".scroll").forEach(fit);
fitAll();
window.addEventListener("resize", fitAll);
// Draws every chart of the page in turn; the specification of each lies beside its place.
(async () => {
  const options = {renderer: "svg", config: LOOK, tooltip: {theme: "light"}, downloadFileName: "laconic",
    actions: {export: true, source: false, compiled: false, editor: false}};
  const draw = async figure => {
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "yes";
    await vegaEmbed(figure.querySelector(".plot"), JSON.parse(figure.querySelector("script").textContent), options);
  };
  // A folded chart has no width yet: it is drawn when it is unfolded.
  const hidden = figure => figure.closest("details:not([open])");
  for (const details of document.querySelectorAll("details"))
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      details.querySelectorAll(".scroll").forEach(fit);
      details.querySelectorAll(".chart").forEach(draw);
    });
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(each => each.open = true));
  for (const figure of document.querySelectorAll(".chart"))
    if (!hidden(figure)) await draw(figure);
  document.body.dataset.charts = "drawn";
})();
