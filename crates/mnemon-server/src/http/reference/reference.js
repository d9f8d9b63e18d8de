"use strict";
// Shows /openapi.json. All texts are set as text, never as HTML.

const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

const typeOf = (schema) => {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const range = schema.minimum !== undefined ? ` ${schema.minimum} to ${schema.maximum}` : "";
  const length = schema.maxLength !== undefined ? ` up to ${schema.maxLength} characters` : "";
  return `${[].concat(schema.type || "any").join(" or ")}${range}${length}`;
};

const fieldsOf = (operation) => {
  const parameters = (operation.parameters || []).map((one) => ({
    name: one.name, place: one.in, required: one.required, schema: one.schema,
    about: one.description || one.schema.description || "",
  }));
  const body = operation.requestBody?.content["application/json"]?.schema;
  const properties = Object.entries(body?.properties || {}).map(([name, schema]) => ({
    name, place: "body", required: (body.required || []).includes(name), schema,
    about: schema.description || "",
  }));
  return parameters.concat(properties);
};

const example = (method, path, operation) => {
  const fields = fieldsOf(operation).filter((one) => one.place === "body" && one.required);
  const value = (schema) => ({ array: [], object: {}, integer: 1, number: 0.5, boolean: true })[[].concat(schema.type)[0]] ?? "…";
  const body = Object.fromEntries(fields.map((one) => [one.name, one.schema.enum ? one.schema.enum[0] : value(one.schema)]));
  const kinds = Object.keys(operation.requestBody?.content || {});
  const sent = kinds.includes("application/json") ? `-d '${JSON.stringify(body)}'` : "-T FILE";
  const data = kinds.length ? ` \\\n  -H 'Content-Type: ${kinds.find((kind) => kind.endsWith("json"))}' ${sent}` : "";
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const key = operation["x-right"] ? " \\\n  -H 'Authorization: Bearer KEY'" : "";
  return `curl${verb} ${location.origin}${path}${key}${data}`;
};

const show = (method, path, operation) => {
  const box = element("details");
  const head = element("summary");
  head.append(element("span", method, `method ${method}`), element("code", path), element("span", operation.summary));
  const body = element("div", undefined, "body");
  body.append(element("p", `Needs the right “${operation["x-right"] || "none"}”.`));
  const fields = fieldsOf(operation);
  if (fields.length) {
    const table = element("table");
    const row = (cells, kind) => {
      const line = element("tr");
      cells.forEach((cell) => line.append(element(kind, cell)));
      table.append(line);
    };
    row(["Field", "In", "Type", ""], "th");
    fields.forEach((one) => row([one.required ? `${one.name} *` : one.name, one.place, typeOf(one.schema), one.about], "td"));
    body.append(table);
  }
  body.append(element("pre", example(method, path, operation)));
  const content = Object.entries(operation.responses["200"]?.content || {})[0];
  body.append(element("p", `Answer: ${content ? `${content[0]}, ${typeOf(content[1].schema)}` : "none"}`));
  box.append(head, body);
  box.dataset.words = `${method} ${path} ${operation.summary}`.toLowerCase();
  return box;
};

const draw = (document_) => {
  document.getElementById("about").textContent = `${document_.info.description} Version ${document_.info.version}.`;
  const main = document.getElementById("operations");
  const tags = new Map();
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const tag = operation.tags[0];
      if (!tags.has(tag)) tags.set(tag, []);
      tags.get(tag).push(show(method.toUpperCase(), path, operation));
    }
  }
  for (const [tag, boxes] of tags) {
    const heading = element("h2", tag);
    heading.id = tag;
    main.append(heading, ...boxes);
    const link = element("a", tag);
    link.href = `#${tag}`;
    document.getElementById("tags").append(link);
  }
  document.getElementById("filter").addEventListener("input", (event) => {
    const word = event.target.value.trim().toLowerCase();
    document.querySelectorAll("details").forEach((box) => { box.hidden = !box.dataset.words.includes(word); });
  });
};

fetch("/openapi.json").then((answer) => answer.json()).then(draw).catch((error) => {
  document.getElementById("about").textContent = `The reference cannot be shown: ${error}`;
});
