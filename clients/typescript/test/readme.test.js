// The quick start of the README runs, and the generated files are as the generator writes them.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startServer } from "./server.js";

test("the quick start of the README", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const code = /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  assert.ok(code.split("\n").length <= 14, "the quick start is short");
  const server = await startServer();
  // Below the package, so that its name is found by its own exports.
  const file = fileURLToPath(new URL("./quick-start.tmp.mjs", import.meta.url));
  try {
    await writeFile(file, code.replace("http://127.0.0.1:8750", server.url));
    const said = execFileSync(process.execPath, [file], { encoding: "utf8" });
    assert.match(said, /green tea/);
    assert.match(said, /Memory/);
  } finally {
    await rm(file, { force: true });
    await server.stop();
  }
});

test("the generated files are up to date", (context) => {
  const script = fileURLToPath(new URL("../../generate.py", import.meta.url));
  const run = spawnSync("python3", [script, "--check"], { encoding: "utf8" });
  if (run.error) return context.skip("python3 is missing");
  assert.equal(run.status, 0, run.stderr);
});
