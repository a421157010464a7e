import type { StopCause } from "./errors.js";
import type { Answer } from "./http.js";

/** Returns the JSON object of an answer. */
export function object(answer: Answer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(answer.body.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the cause for which an answer ends the work. */
export function causeOf(answer: Answer): StopCause | undefined {
  if (answer.status === 410) return "expired";
  if (answer.status !== 409) return undefined;
  const problem = object(answer);
  if (problem?.error !== "task_already_terminal") return "superseded";
  return problem.state === "CANCELLED" ? "cancelled" : "ended";
}
