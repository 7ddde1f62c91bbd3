// Requests to the server, and what can go wrong with them as one kind of error.

const PATIENCE = 60_000; // ms
const KEY = "paddle_dialog.key";
let key = storedKey();

/** A request without a result; `name` in words.js tells it, filled from `values`. */
export class ApiError extends Error {
  constructor(name, values = {}) {
    super(name);
    this.word = name;
    this.values = values;
  }
}

/** The models that the server has. */
export const models = () => ask("v1/models");

/** 下联 for a 上联; `request` is the body that the API describes. */
export const answerCouplet = (request) => ask("v1/couplet", request);

/** Replies to a conversation. */
export const answerTurn = (request) => ask("v1/reply", request);

/** Sends this key with every request from now on, until the tab is closed. */
export function useKey(text) {
  key = text;
  try {
    sessionStorage.setItem(KEY, text);
  } catch {
    // Storage is forbidden here: the key holds until the page is closed.
  }
}

async function ask(path, body) {
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  options.signal = AbortSignal.timeout(PATIENCE);
  let response, answer;
  try {
    response = await fetch(path, options);
    answer = await response.json();
  } catch {
    if (options.signal.aborted) throw new ApiError("late");
    throw response === undefined ? new ApiError("away") : failure(response, undefined);
  }
  if (!response.ok) throw failure(response, answer);
  if (answer === null || typeof answer !== "object") throw new ApiError("unreadable");
  return answer;
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
  const detail = typeof answer?.error === "string" ? answer.error : `HTTP ${status}`;
  return new ApiError(status < 500 ? "refused" : "fault", { detail });
}

function storedKey() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
