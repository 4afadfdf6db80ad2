// Search in pages that are opened from a folder. A browser starts no worker from a file, so there a frame takes its
// place: a script in a frame has a loop of messages with this page, as a worker has.
//
// MkDocs' plugin "offline" would load such a script from the network, unless one with this name is there.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame;
      this.heard = event => {
        if (event.source === frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      };
      addEventListener("message", this.heard);
      const inside = frame.contentDocument;
      inside.open();
      inside.write("<!doctype html><script>postMessage = data => parent.postMessage(data, '*')</script>");
      inside.close();
      const script = inside.createElement("script");
      this.ready = new Promise(resolve => (script.onload = resolve));
      script.src = new URL(address, document.baseURI);
      inside.body.append(script);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      removeEventListener("message", this.heard);
      this.frame.remove();
    }
  }
  window.IFrameWorker = window.Worker = IFrameWorker;
}
