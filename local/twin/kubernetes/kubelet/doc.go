// Package kubelet is a node of a Kubernetes cluster as it is elsewhere: the kubelet and
// containerd, with runc, images that it pulls, and control groups that limit memory. It is
// for tests and needs Linux, root, control groups that it can write, and Debian's packages
// of runc and busybox.
//
// Everything that the node changes is its own, and ends with it:
//
//	test ── supervisor ── first process of a PID and a mount namespace ── containerd, kubelet
//	                                                                       └─ shims, runc, pods
//
// The mount namespace has the node's own /run, /var/lib, /var/log, and files in place of
// the kernel settings that the kubelet changes, so that those of the host stay. A control
// group of its own has the pods. Close, or the end of the test in any way, closes the
// standard input of the supervisor, which kills the first process, and thereby all
// others, and removes the control group and the data.
//
// Unlike on other nodes, the containers use the network of the host, because the parts of
// the local system listen on loopback, and see one folder of the host, with which tests
// talk to programs. The program in the folder runc makes that change.
package kubelet
