package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNoteOfTheKubeletIsNoLog(t *testing.T) {
	t.Parallel()
	const id = "containerd://ed4d2855a1b5"
	const note = "unable to retrieve container logs for "
	begun := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "other"}, {Name: container, ContainerID: id}}}}
	for name, row := range map[string]struct {
		pod        *corev1.Pod
		text, want string
		noted      bool
	}{
		"a log":                     {begun, "one\ntwo\n", "one\ntwo\n", false},
		"an empty log":              {begun, "", "", false},
		"no log":                    {begun, note + id, "", true},
		"a log that ends early":     {begun, "one\n" + note + id, "one\n", true},
		"a log about another note":  {begun, note + "containerd://another", note + "containerd://another", false},
		"a log that continues":      {begun, note + id + "\n", note + id + "\n", false},
		"a container without an id": {&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: container}}}}, note, note, false},
		"no container":              {&corev1.Pod{}, note + id, note + id, false},
	} {
		if got, noted := withoutNote([]byte(row.text), row.pod); string(got) != row.want || noted != row.noted {
			t.Errorf("%s: got %q, %t, want %q, %t", name, got, noted, row.want, row.noted)
		}
	}
}
