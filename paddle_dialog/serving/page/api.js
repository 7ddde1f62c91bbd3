// Requests to the server, with every failure as one kind of error.

import { recall, remember } from "./memory.js";

const PATIENCE = 60_000; // ms
const LINES = "application/x-ndjson"; // a record a line, each when it is there
const KEY = "paddle_dialog.key";
let key = recall("sessionStorage", KEY);

/** A request without a result; the word `name`, filled from `values`, is the message. */
export class ApiError extends Error {
  constructor(name, values = {}) {
    super(name);
    this.word = name;
    this.values = values;
  }
}

/** Send this key with every request from now on, until the tab is closed. */
export function useKey(text) {
  key = text;
  remember("sessionStorage", KEY, text);
}

/**
 * Ask the server.
 * @param {string} path e.g. "v1/models"
 * @param {object} [body] sent by POST, as the API describes it; without one it is a GET
 * @param {AbortSignal} [stop] ends the request
 * @param {(part: object) => void} [take] takes what there is of the answer so far; once it had some, that is the answer whatever
 * ends the request, with `isCut`
 * @throws {ApiError}
 */
export async function ask(path, body, stop = new AbortController().signal, take) {
  const headers = { Accept: take === undefined ? "application/json" : `${LINES}, application/json` };
  if (key) headers.Authorization = `Bearer ${key}`;
  const options = { headers, cache: "no-store", signal: AbortSignal.any([stop, AbortSignal.timeout(PATIENCE)]) };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let response, answer, part;
  try {
    response = await fetch(path, options);
    const isInLines = response.headers.get("Content-Type")?.startsWith(LINES);
    answer = await (isInLines ? readLines(response.body, (one) => take((part = one))) : response.json());
  } catch {
    if (part !== undefined) return { ...part, isCut: true };
    if (options.signal.aborted) throw new ApiError(stop.aborted ? "stopped" : "late");
    throw response === undefined ? new ApiError("away") : failure(response, undefined);
  }
  if (!response.ok) throw failure(response, answer);
  if (answer === null || typeof answer !== "object") throw new ApiError("unreadable");
  return answer;
}

/** Read records, give those that are no errors away, and return the last one; an error after others cuts them short. */
async function readLines(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let record; ; ) {
    const { done, value } = await reader.read();
    if (done) return record;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      record = JSON.parse(line);
      if (record.error !== undefined) throw new ApiError("late");
      take(record);
    }
  }
}

function failure(response, answer) {
  const { status } = response;
  if (status === 401) return new ApiError("keyWanted");
  if (status === 503 || status === 429) {
    const seconds = Number(response.headers.get("Retry-After"));
    return new ApiError("busy", { seconds: Number.isFinite(seconds) && seconds > 0 ? Math.ceil(seconds) : 1 });
  }
  if (status === 504 || status === 408) return new ApiError("late");
  if (response.ok) return new ApiError("unreadable");
  if (typeof answer?.code === "string") return new ApiError(`refused_${answer.code}`, answer.values);
  const detail = typeof answer?.error === "string" ? answer.error : `HTTP ${status}`;
  return new ApiError(status < 500 ? "refused" : "fault", { detail });
}
