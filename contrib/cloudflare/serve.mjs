// Runs worker.js in workerd, the runtime that Cloudflare itself uses, on this machine alone: the url is printed, and it
// goes on until its input is closed. The token that it knows is the one in TOKEN.
import { Miniflare } from "miniflare";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const miniflare = new Miniflare({
  modules: true,
  modulesRoot: folder,
  scriptPath: `${folder}worker.js`,
  compatibilityDate: "2025-09-01",
  host: "127.0.0.1",
  port: 0,
  bindings: { TOKEN: process.env.TOKEN ?? "" },
});
console.log(String(await miniflare.ready));
process.stdin.resume();
process.stdin.on("end", async () => {
  await miniflare.dispose();
  process.exit(0);
});
