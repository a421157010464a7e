package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// want returns the rule of a field with only one valid value.
func want[T comparable](right *T) func(author, any) string {
	return func(_ author, value any) string {
		if value == any(*right) {
			return ""
		}
		return fmt.Sprintf("not allowed, %v reaches the node; want %v or no field", value, *right)
	}
}

func userProblem(_ author, value any) string {
	if value == any(int64(0)) {
		return "not allowed, 0 is root; want the number of another user"
	}
	return ""
}

// profileProblem refuses a pod without seccomp or AppArmor. Only a pool may use a profile of
// the node.
func profileProblem(who author, value any) string {
	switch profile := fmt.Sprint(value); {
	case profile == "RuntimeDefault" || profile == "Localhost" && who == authorPool:
		return ""
	default:
		return fmt.Sprintf("not allowed, %s reaches the node; want RuntimeDefault or no field", profile)
	}
}

func addProblem(_ author, value any) string {
	added, _ := value.([]corev1.Capability)
	for _, c := range added {
		if c != "NET_BIND_SERVICE" {
			return fmt.Sprintf("not allowed, %s reaches the node; want NET_BIND_SERVICE or no field", c)
		}
	}
	return ""
}

func dropProblem(_ author, value any) string {
	if dropped, _ := value.([]corev1.Capability); !slices.Contains(dropped, "ALL") {
		return fmt.Sprintf("%v keeps capabilities; want [ALL] or no field", dropped)
	}
	return ""
}

// priorityProblem refuses the classes of the cluster's own pods, which evict all others.
func priorityProblem(_ author, value any) string {
	if name := fmt.Sprint(value); strings.HasPrefix(name, "system-") {
		return fmt.Sprintf("not allowed, %s is for pods of the cluster; want another class or no field", name)
	}
	return ""
}

// tolerationProblem refuses jobs on nodes of the control plane.
func tolerationProblem(who author, value any) string {
	tolerations, _ := value.([]corev1.Toleration)
	for _, t := range tolerations {
		if who == authorJob && (t.Key == "" || strings.HasPrefix(t.Key, "node-role.kubernetes.io/")) {
			return fmt.Sprintf("not allowed, %q tolerates nodes of the control plane; want the key of another taint", t.Key)
		}
	}
	return ""
}
