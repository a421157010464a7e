/** Waits that can be cut short. */
export class Timer {
  private wake: (() => void) | undefined;
  private requested = false;

  /** Resolves after ms, or when poke is called. */
  wait(ms: number): Promise<void> {
    if (this.requested) {
      this.requested = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => end(), Math.min(Math.max(ms, 0), 2 ** 31 - 1));
      const end = (): void => {
        clearTimeout(timer);
        this.wake = undefined;
        resolve();
      };
      this.wake = end;
    });
  }

  poke(): void {
    if (this.wake) this.wake();
    else this.requested = true;
  }
}
