package stack

// reserveBytes is what a stack on its own may add to its memory so that its processor
// collects garbage less often.
const reserveBytes = 48 << 20

// Reserve returns memory that is never written. A garbage collection begins when as much was
// allocated as is in use: in a stack without much to do that is 15 MB, which 25 runs allocate, so
// that a fifth of the processor's time went into collections. The reserve counts as used
// without being taken from the machine; the process grows by its size at most. The caller
// keeps it (runtime.KeepAlive) as long as the stack serves. GOGC and GOMEMLIMIT work as ever.
func Reserve() []byte { return make([]byte, reserveBytes) }
