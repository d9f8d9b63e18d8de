// The reference page of a running server shows every operation of its contract:
//   node reference.mjs http://127.0.0.1:8750
// The script of the page runs with the few parts of a document that it uses.

const url = process.argv[2];
const made = [];

const element = (name) => {
  const one = {
    name, children: [], dataset: {}, textContent: "",
    append: (...parts) => one.children.push(...parts),
    addEventListener: () => {},
  };
  made.push(one);
  return one;
};
const known = new Map();
const document = {
  createElement: element,
  getElementById: (id) => known.get(id) ?? known.set(id, element(id)).get(id),
  querySelectorAll: () => [],
};

const [script, contract] = await Promise.all([
  fetch(`${url}/docs/reference.js`).then((answer) => answer.text()),
  fetch(`${url}/openapi.json`).then((answer) => answer.json()),
]);
const run = new Function("document", "location", "fetch", script);
run(document, { origin: url }, (path) => fetch(`${url}${path}`));

const operations = Object.values(contract.paths).flatMap(Object.keys).length;
const count = () => made.filter((one) => one.name === "details").length;
const said = () => document.getElementById("about").textContent;
for (let tries = 0; tries < 300 && count() < operations && !said().includes("cannot"); tries += 1) {
  await new Promise((resolve) => { setTimeout(resolve, 100); });
}
const [shown, about] = [count(), said()];
if (shown !== operations) {
  console.error(`${shown} of ${operations} operations are shown: ${about}`);
  process.exit(1);
}
console.log(`the reference shows all ${shown} operations`);
