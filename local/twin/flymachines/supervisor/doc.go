// Package supervisor runs one program as a machine's, and outlives the process
// that asked for it.
//
//	server ──Launch──► supervisor ──► program, in a process group of its own
//	   ▲                  │ lock        │
//	   └──────Wait────────┤ start.json  └─ output.*
//	                      └ exit.json
//
// The supervisor is the same executable, run again in its own session. It
// holds a lock on the machine's directory for as long as it lives, records the
// start before and after it happens and the end once it is known, keeps the
// output, and kills what the program leaves of its group. So whoever comes
// later, a server that was killed and started again too, finds the program or
// its exit code in the directory.
//
// It promises that one start happens at most once, that a program whose
// supervisor was killed is killed too (on Linux by the kernel, elsewhere by
// whoever waits for it), and that a process is signalled only where number and
// birth are the recorded ones. It refuses to restart anything: that is the
// server's decision. A program that leaves its process group is out of reach.
package supervisor
