// A server of the program in MNEMON_BIN, with a folder and a port of its own.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const program = process.env["MNEMON_BIN"];

/**
 * @param {{ key?: string, listen?: string, home?: string }} [options]
 * @returns {Promise<{ url: string, home: string, stop(keep?: boolean): Promise<void> }>}
 */
export async function startServer({ key, listen = "127.0.0.1:0", home } = {}) {
  if (!program) throw new Error("MNEMON_BIN must name the mnemon program");
  const folder = home ?? (await mkdtemp(join(tmpdir(), "mnemon-ts-")));
  const child = spawn(resolve(program), ["serve", "--listen", listen, "--log", "none"], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, ...(key ? { MNEMON_API_KEY: key } : {}) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise((done) => child.once("exit", done));
  const url = await new Promise((found, failed) => {
    let said = "";
    /** @param {Buffer} chunk */
    const listenTo = (chunk) => {
      said += chunk;
      const match = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (match) found(match[0]);
    };
    child.stdout.on("data", listenTo);
    child.stderr.on("data", listenTo);
    ended.then(() => failed(new Error(`the server ended: ${said}`)));
  });
  return {
    url,
    home: folder,
    async stop(keep = false) {
      child.kill("SIGTERM");
      await ended;
      if (!keep) await rm(folder, { recursive: true, force: true });
    },
  };
}
