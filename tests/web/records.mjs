// Prints varied records as lines for `mnemon import`: notes, facts, decisions, events, messages of
// conversations and records derived from others, of 50 users, over two years. The seed is fixed.
//   node records.mjs COUNT
const count = Number(process.argv[2] ?? 100_000);
let state = 7;
// Mulberry32: the same numbers in every run.
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}
const below = (limit) => Math.floor(random() * limit);
const one = (list) => list[below(list.length)];

const COMMON = ("the a to of and in for on with at by from is was are before after every about meeting deploy release "
  + "server database index search memory customer invoice contract review green tea coffee train Vienna Hanoi Monday "
  + "Friday budget team report garden music doctor flight hotel key password rotation backup restore test failure "
  + "error timeout latency cache queue worker token prompt model agent user account address phone birthday").split(" ");
const PARTS = "ka lo mi ren tas vor del qui sun par nel dro fim gat hul jor bex wyn zet cal".split(" ");
const rare = Array.from({ length: 12_000 }, () => Array.from({ length: 2 + below(2) }, () => one(PARTS)).join(""));
// Few words are frequent and many are rare, as in real texts.
const word = () => (random() < 0.6 ? COMMON[Math.floor(COMMON.length * random() ** 2)] : rare[Math.floor(rare.length * random() ** 3)]);
const sentence = (words) => Array.from({ length: words }, word).join(" ");

const START = Date.UTC(2025, 0, 1);
const SPAN = 2 * 365 * 86_400_000;
const FIXED = 1_500;
function record(number) {
  const id = `r${String(number).padStart(6, "0")}`;
  const created = new Date(START + Math.floor((number / count) * SPAN)).toISOString();
  const base = {
    v: 1, id, tenant: "default", owner: { user: `user${below(50)}` }, scope: "semantic", kind: "note",
    namespace: "long-term", content: sentence(8 + below(50)), tags: [`tag${below(200)}`], origin: "user",
    importance: Math.round(random() * 100) / 100, created, updated: created,
  };
  const share = number < FIXED ? 0.8 : random();
  if (share < 0.55) return base;
  if (share < 0.68) return { ...base, kind: "fact", owner: {} };
  if (share < 0.72) return { ...base, kind: "decision" };
  if (share < 0.76) return { ...base, kind: "event" };
  if (share < 0.9) return message(base, number);
  const sources = Array.from({ length: 1 + below(3) }, () => `r${String(below(number)).padStart(6, "0")}`);
  return { ...base, derived_from: [...new Set(sources)] };
}
function message(base, number) {
  // One long conversation, and many short ones.
  const talk = number < FIXED ? -1 : below(800);
  const [session, user] = talk < 0 ? ["long", "user1"] : [`talk${talk}`, `user${talk % 50}`];
  const body = {
    content: [{ text: base.content, type: "text" }], id: base.id, metadata: {}, name: null,
    role: number % 2 ? "ASSISTANT" : "USER", timestamp: base.created,
  };
  return { ...base, scope: "dialog", kind: "message", tags: [], importance: undefined, owner: { user, session }, body };
}
for (let number = 0; number < count; number += 1) console.log(JSON.stringify(record(number)));
