//go:build unix

// Package proctree runs one program and ends everything that it leaves behind.
//
// A Tree is a program and its descendants. These include processes that changed their process
// group or session, whose parent has ended (double fork, nohup, setsid), or that ignore
// signals. On Linux the calling process becomes their subreaper, so orphans become its
// children. Kill freezes and kills all descendants, and repeats that until the kernel reports
// that no child is left. If the process may create a cgroup v2, the tree has its own, and the
// kernel kills all members at once, including forks.
//
// A process that starts a Tree has no other child processes, because the tree waits for all of
// them. On systems other than Linux the package reaches only the program's process group.
//
// KillMarked kills the processes of a tree whose subreaper was killed: those in its cgroup, and
// those that inherited its mark in their environment.
//
// ReapOrphans is for a process with other children, such as a server that is the first
// process of a container.
package proctree
