/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** The cursor of the next page; undefined on the last one. */
  next: string | undefined;
}

/** A list. Await it for its first page, or iterate over all its items. */
export interface List<T> extends PromiseLike<Page<T>>, AsyncIterable<T> {
  /** Iterates over the pages. */
  pages(): AsyncIterable<Page<T>>;
}

export function list<T>(fetchPage: (cursor: string | undefined) => Promise<Page<T>>): List<T> {
  async function* pages(): AsyncGenerator<Page<T>> {
    for (let cursor: string | undefined; ; ) {
      const page = await fetchPage(cursor);
      yield page;
      if (page.next === undefined || page.next === cursor) return;
      cursor = page.next;
    }
  }
  async function* items(): AsyncGenerator<T> {
    for await (const page of pages()) yield* page.items;
  }
  return {
    then: (resolve, reject) => fetchPage(undefined).then(resolve, reject),
    pages,
    [Symbol.asyncIterator]: items,
  };
}

