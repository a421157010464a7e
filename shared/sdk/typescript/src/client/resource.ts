import type { operations } from "../generated/openapi.js";
import type { Call, CallOptions, Http, OperationId } from "./http.js";
import { type List, list } from "./page.js";

/** The query of an operation. */
export type Query<O extends keyof operations> = NonNullable<operations[O]["parameters"]["query"]>;
/** The query of a list, without the cursor. */
export type Filter<O extends keyof operations> = Omit<Query<O>, "cursor" | "after">;

type Success<R> = R[keyof R & (200 | 201 | 202)];
type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;
/** What an operation answers. */
export type Answer<O extends keyof operations> = [Json<Success<operations[O]["responses"]>>] extends [never] ? void : Json<Success<operations[O]["responses"]>>;
type Item<L> = L extends (infer T)[] ? T : never;

/** A group of operations. */
export class Resource {
  /** @internal */
  protected readonly http: Http;

  /** @internal */
  constructor(http: Http) {
    this.http = http;
  }

  /** @internal */
  protected json<O extends OperationId>(operation: O, call: Call, options: CallOptions | undefined): Promise<Answer<O>> {
    return this.http.json<Answer<O>>(operation, call, options);
  }

  /** @internal */
  protected collect<O extends OperationId, M extends keyof Answer<O> & string>(
    operation: O, member: M, call: Call, options: CallOptions | undefined,
  ): List<Item<Answer<O>[M]>> {
    return list(async (cursor) => {
      const answer = await this.http.json<Record<string, unknown>>(operation, { ...call, query: { ...call.query, cursor } }, options);
      return { items: (answer[member] ?? []) as Item<Answer<O>[M]>[], next: (answer.nextCursor ?? answer.next_cursor) as string | undefined };
    });
  }

  /** @internal Lists of numbered items, which continue behind a number. */
  protected numbered<O extends OperationId, M extends keyof Answer<O> & string>(
    operation: O, member: M, call: Call, options: CallOptions | undefined,
  ): List<Item<Answer<O>[M]>> {
    return list(async (after) => {
      const query = { ...call.query, ...(after === undefined ? {} : { after }) };
      const answer = await this.http.json<Record<string, unknown>>(operation, { ...call, query }, options);
      return { items: (answer[member] ?? []) as Item<Answer<O>[M]>[], next: answer.nextAfter === undefined ? undefined : String(answer.nextAfter) };
    });
  }
}
