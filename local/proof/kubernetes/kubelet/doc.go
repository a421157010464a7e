// Package kubelet runs a realistic node of a Kubernetes cluster: the kubelet and containerd
// with runc, images that it pulls, and control groups that limit memory. It is for tests. It
// needs Linux, root, writable control groups, and Debian's packages of runc and busybox.
//
// The node changes only resources of its own, which end with it:
//
//	test ── supervisor ── first process of a PID and a mount namespace ── containerd, kubelet
//	                                                                       └─ shims, runc, pods
//
// The mount namespace has the node's own /run, /var/lib and /var/log. Files replace the kernel
// settings that the kubelet changes, so the host's settings stay unchanged. The pods are in a
// control group of the node. Close, or any end of the test, closes the standard input of the
// supervisor. The supervisor then kills the first process, and thereby all others, and removes
// the control group and the data.
//
// Unlike on other nodes, the containers use the host's network, because the parts of the local
// system listen on loopback. They also see one folder of the host, through which tests
// communicate with programs. The program in the folder runc makes these changes.
package kubelet
