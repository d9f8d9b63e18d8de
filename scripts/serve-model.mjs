// A model behind the part of /v1/chat/completions that the live tests use. See serve-model.
import http from "node:http";
import { getLlama, LlamaChatSession } from "node-llama-cpp";

const [weights, port] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, maxThreads: 1, build: "never", progressLogs: false });
const model = await llama.loadModel({ modelPath: weights });
const context = await model.createContext({ contextSize: 2048, threads: 1 });
const sequence = context.getSequence();
let queue = Promise.resolve();

// The chat history in the runner's own form; the last message is the question.
function history(messages) {
  return messages.slice(0, -1).map(({ role, content }) =>
    role === "system" ? { type: "system", text: content }
      : role === "assistant" ? { type: "model", response: [content] }
        : { type: "user", text: content });
}

async function complete({ messages, max_tokens, response_format }) {
  const session = new LlamaChatSession({ contextSequence: sequence, systemPrompt: "" });
  try {
    session.setChatHistory(history(messages));
    const schema = response_format?.json_schema?.schema;
    const grammar = schema ? await llama.createGrammarForJsonSchema(schema) : undefined;
    const before = sequence.tokenMeter.getState();
    const text = await session.prompt(messages.at(-1).content, { maxTokens: max_tokens, grammar });
    const used = sequence.tokenMeter.diff(before);
    return {
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: text } }],
      usage: { prompt_tokens: used.usedInputTokens, completion_tokens: used.usedOutputTokens },
    };
  } finally {
    session.dispose({ disposeSequence: false });
    await sequence.clearHistory();
  }
}

http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const answer = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
    return answer(404, { error: { message: "only POST /v1/chat/completions" } });
  }
  // One after the other: there is one context.
  queue = queue.then(async () => {
    try {
      answer(200, await complete(JSON.parse(Buffer.concat(chunks))));
    } catch (error) {
      answer(500, { error: { message: String(error.message ?? error) } });
    }
  });
}).listen(Number(port), "127.0.0.1", () => console.log(`ready: http://127.0.0.1:${port}/v1`));
