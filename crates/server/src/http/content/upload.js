"use strict";
const [form, input, button, progress, status] = ["form", "#file", "#send", "#progress", "#status"]
  .map((selector) => document.querySelector(selector));
const bytes = (count) => `${count.toLocaleString("en")} bytes`;
const say = (text, isError) => {
  status.textContent = text;
  status.className = isError ? "error" : "";
};
const problem = (file) => {
  const { max, size } = form.dataset;
  if (!file) return "Choose a file first.";
  if (size !== undefined && file.size !== Number(size)) {
    return `The file has ${bytes(file.size)}; the link is for one of ${bytes(Number(size))}.`;
  }
  if (file.size > Number(max)) return `The file has ${bytes(file.size)}; at most ${bytes(Number(max))} are stored.`;
  return undefined;
};
const finish = (text, isError) => {
  progress.hidden = true;
  form.hidden = !isError;
  button.disabled = input.disabled = false;
  say(text, isError);
  if (isError) input.focus();
};
const read = (request) => {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return {};
  }
};
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const file = input.files[0];
  const wrong = problem(file);
  if (wrong) return finish(wrong, true);
  const request = new XMLHttpRequest();
  const name = form.dataset.named === undefined ? `?name=${encodeURIComponent(file.name)}` : "";
  request.open("PUT", location.pathname + name);
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    progress.max = total || 1;
    progress.value = loaded;
    say(`Sent ${bytes(loaded)} of ${bytes(file.size)}.`);
  });
  request.addEventListener("load", () => {
    const answer = read(request);
    if (request.status < 300) return finish(`Stored ${answer.name}, ${bytes(answer.size)}. You can close this page.`);
    finish(answer.detail || `The server responded with ${request.status}.`, true);
  });
  request.addEventListener("error", () => finish("The connection was lost. Try again.", true));
  button.disabled = input.disabled = true;
  progress.hidden = false;
  say("Sending …");
  request.send(file);
});
