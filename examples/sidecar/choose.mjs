// Ten decisions and their rewards, from Node. Give the Unix socket of `laconic agent agent.toml`.
import http from "node:http";

const socketPath = process.argv[2] ?? "edge-1.sock";

function ask(path, body) {
  const data = body === undefined ? undefined : JSON.stringify(body);
  const headers = data === undefined ? {} : {
    "Content-Type": "application/json", "Content-Length": Buffer.byteLength(data),
  };
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path, method: data === undefined ? "GET" : "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => {
        const found = JSON.parse(text);
        if (answer.statusCode === 200) resolve(found);
        else reject(new Error(`${answer.statusCode}: ${found.error}`));
      });
    });
    request.on("error", reject);
    request.end(data);
  });
}

const arms = [[0.1, 0.9, 0.3], [0.8, 0.2, 0.5], [0.5, 0.5, 0.5]];
const pays = [0.2, 0.9, 0.4];
const chosen = [0, 0, 0];
for (let round = 0; round < 10; round += 1) {
  const decision = await ask("/choose", { arms });
  chosen[decision.arm] += 1;
  await ask("/observe", { id: decision.id, reward: pays[decision.arm] });
}
const status = await ask("/status");
console.log(JSON.stringify({ chosen, observations: status.observations, pending: status.pending }));
