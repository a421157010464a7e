package stack

// reserveBytes is what a stack on its own may add to its memory so that its processor
// collects garbage less often.
const reserveBytes = 48 << 20

// Reserve returns memory that is never written. The garbage collector begins when as much
// was allocated as is in use, and a stack without much to do uses 15 MB, of which a run
// allocates the half: a fifth of the processor's time would go into collections. The
// reserve counts as used, but no page of it is ever taken from the machine; what the
// process may grow by is at most its size. The caller keeps it (runtime.KeepAlive) as long
// as the stack serves. GOGC and GOMEMLIMIT work as ever.
func Reserve() []byte { return make([]byte, reserveBytes) }
