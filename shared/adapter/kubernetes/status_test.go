package kubernetes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// pod returns a pod with the status.
func pod(phase corev1.PodPhase, state corev1.ContainerState, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: container, State: state}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func exited(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: at(10)}}
}

// deleted marks a pod as deleted at a second with a grace of 30 s.
func deleted(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(second+30)), new(int64(30))
	}
}

// deletedAgain sets the deletion by a kubelet after the end of the program.
func deletedAgain(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(second)), new(int64(0))
	}
}

func stopped(p *corev1.Pod) { p.Annotations = map[string]string{keyStopped: "t"} }

func disrupted(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at(5)}}
}

var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func job(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{}
	for _, c := range change {
		c(j)
	}
	return j
}

func has(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

func suspendedFor(mark string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Suspend, j.Annotations = new(true), map[string]string{mark: "now"}
	}
}

func TestPhaseAndExit(t *testing.T) {
	t.Parallel()
	end := at(10).UTC()
	for name, test := range map[string]struct {
		o     objects
		phase port.MachinePhase
		exit  *port.Exit
	}{
		"no pod yet":                      {objects{job: job()}, port.MachineCreating, nil},
		"suspended by a queue":            {objects{job: job(suspendedFor("other"), has(batchv1.JobSuspended))}, port.MachineCreating, nil},
		"stopped before it had a pod":     {objects{job: job(suspendedFor(keyStopped), has(batchv1.JobSuspended))}, port.MachineGone, nil},
		"being suspended":                 {objects{job: job(suspendedFor(keyDestroyed))}, port.MachineEnding, nil},
		"failed without a pod":            {objects{job: job(has(batchv1.JobFailed))}, port.MachineGone, nil},
		"pending":                         {objects{pods: []*corev1.Pod{pod(corev1.PodPending, corev1.ContainerState{})}}, port.MachineCreating, nil},
		"running":                         {objects{pods: []*corev1.Pod{pod(corev1.PodRunning, runs)}}, port.MachineRunning, nil},
		"running, and being deleted":      {objects{pods: []*corev1.Pod{pod(corev1.PodRunning, runs, deleted(0))}}, port.MachineEnding, nil},
		"program ended, helpers run":      {objects{pods: []*corev1.Pod{pod(corev1.PodRunning, exited(0, "Completed"))}}, port.MachineEnding, nil},
		"success":                         {objects{pods: []*corev1.Pod{pod(corev1.PodSucceeded, exited(0, "Completed"))}}, port.MachineGone, &port.Exit{At: end}},
		"exit code":                       {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(93, "Error"))}}, port.MachineGone, &port.Exit{Code: 93, At: end}},
		"exit code 137 of the program":    {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "Error"))}}, port.MachineGone, &port.Exit{Code: 137, At: end}},
		"killed after its deletion":       {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "Error"), deleted(5))}}, port.MachineGone, &port.Exit{Code: 137, Signal: 9, Requested: true, At: end}},
		"ended after its deletion":        {objects{pods: []*corev1.Pod{pod(corev1.PodSucceeded, exited(0, "Completed"), deleted(10))}}, port.MachineGone, &port.Exit{Requested: true, At: end}},
		"ended before its deletion":       {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "Error"), deleted(11))}}, port.MachineGone, &port.Exit{Code: 137, At: end}},
		"stopped, and deleted again":      {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "Error"), deletedAgain(12), stopped)}}, port.MachineGone, &port.Exit{Code: 137, Signal: 9, Requested: true, At: end}},
		"out of memory":                   {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "OOMKilled"))}}, port.MachineGone, &port.Exit{Code: 137, Signal: 9, OOM: true, At: end}},
		"evicted before it ran":           {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, corev1.ContainerState{}, disrupted)}}, port.MachineGone, &port.Exit{Code: 137, Requested: true, At: at(5).UTC()}},
		"its node was lost":               {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, runs, disrupted)}}, port.MachineGone, &port.Exit{Code: 137, Signal: 9, Requested: true, At: at(5).UTC()}},
		"deleted before it was scheduled": {objects{pods: []*corev1.Pod{pod(corev1.PodPending, corev1.ContainerState{}, deleted(0), func(p *corev1.Pod) { p.Spec.NodeName = "" })}}, port.MachineGone, &port.Exit{Code: 137, Requested: true, At: at(30).UTC()}},
		"preempted":                       {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(143, "Error"), disrupted)}}, port.MachineGone, &port.Exit{Code: 143, Requested: true, At: end}},
		"status of the program is lost":   {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, exited(137, "ContainerStatusUnknown"))}}, port.MachineGone, &port.Exit{Code: 137, Signal: 9, At: end}},
		"failed without a status":         {objects{pods: []*corev1.Pod{pod(corev1.PodFailed, corev1.ContainerState{})}}, port.MachineGone, nil},
		"a pod that runs counts":          {objects{job(), []*corev1.Pod{pod(corev1.PodFailed, exited(1, "")), pod(corev1.PodRunning, runs)}}, port.MachineRunning, nil},
	} {
		got := test.o.status("c", place{"n", "name", "uid"}, false)
		if diff := cmp.Diff(test.exit, got.Exit); diff != "" || got.Phase != test.phase {
			t.Errorf("%s: got phase %s, want %s; exit -want +got:\n%s", name, got.Phase, test.phase, diff)
		}
	}
}

func TestMachineHasTheAddressOfItsPod(t *testing.T) {
	t.Parallel()
	addressed := pod(corev1.PodRunning, runs, func(p *corev1.Pod) { p.Status.PodIP = "10.1.2.3" })
	if got := (objects{pods: []*corev1.Pod{addressed}}).status("c", place{"n", "name", "uid"}, false); got.Address != "10.1.2.3" {
		t.Errorf("got address %q, want 10.1.2.3", got.Address)
	}
}

func TestWhyAPodDoesNotStart(t *testing.T) {
	t.Parallel()
	waits := func(reason, message string) *corev1.Pod {
		return pod(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	}
	unschedulable := pod(corev1.PodPending, corev1.ContainerState{}, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}
	})
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		pending time.Duration
		code    fault.Code
		words   string
	}{
		"creating":                    {waits("ContainerCreating", ""), time.Hour, "", ""},
		"unschedulable for a moment":  {unschedulable, time.Second, "", ""},
		"unschedulable":               {unschedulable, 10 * time.Second, fault.Capacity, "cannot launch the machine: the cluster cannot schedule the pod: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		"registry does not answer":    {waits("ErrImagePull", "dial tcp: i/o timeout"), 0, "", ""},
		"image is unknown":            {waits("ErrImagePull", "rpc error: code = NotFound desc = manifest unknown"), 0, fault.Image, "cannot launch the machine: the cluster cannot use the image: ErrImagePull: rpc error: code = NotFound desc = manifest unknown"},
		"image again and again":       {waits("ImagePullBackOff", "Back-off pulling image"), 0, fault.Image, "cannot launch the machine: the cluster cannot use the image: ImagePullBackOff: Back-off pulling image"},
		"malformed image":             {waits("InvalidImageName", ""), 0, fault.Image, "cannot launch the machine: the cluster cannot use the image: InvalidImageName"},
		"its Secret is created later": {waits("CreateContainerConfigError", `secret "s-x" not found`), 0, "", ""},
		"image runs as root":          {waits("CreateContainerConfigError", "container has runAsNonRoot\n and image will run as root"), 0, fault.LaunchRefused, "cannot launch the machine: the cluster cannot create the container: CreateContainerConfigError: container has runAsNonRoot and image will run as root"},
		"no such program":             {pod(corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "exec: no such file"}}), 0, fault.Image, "cannot launch the machine: the cluster cannot start the program: StartError: exec: no such file"},
		"exit code":                   {pod(corev1.PodFailed, exited(128, "Error")), 0, "", ""},
	} {
		got := startProblem(test.pod, "s", test.pending < 5*time.Second)
		if got == nil && test.code != "" || got != nil && (got.Code != test.code || got.Message != test.words) {
			t.Errorf("%s: got %v, want %s %q", name, got, test.code, test.words)
		}
	}
	for message, code := range map[string]fault.Code{
		`Error creating: pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`: fault.Capacity,
		`Error creating: pods "a" is forbidden: violates PodSecurity "restricted:latest"`:                            fault.LaunchRefused,
		`Error creating: Internal error occurred`:                                                                    "",
	} {
		if got := refusedPod(message); got == nil && code != "" || got != nil && got.Code != code {
			t.Errorf("%s: got %v, want %q", message, got, code)
		}
	}
}

// TestWhatAMachineWaitsFor checks the reasons that a cluster reports for a machine that may
// start.
func TestWhatAMachineWaitsFor(t *testing.T) {
	t.Parallel()
	waits := func(reason, message string) objects {
		return objects{job: &batchv1.Job{}, pods: []*corev1.Pod{
			pod(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}),
		}}
	}
	unscheduled := objects{pods: []*corev1.Pod{pod(corev1.PodPending, corev1.ContainerState{}, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	})}}
	suspended := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}
	withdrawn := suspended.DeepCopy()
	withdrawn.Annotations = map[string]string{keyStopped: "t"}
	for name, row := range map[string]struct {
		o       objects
		patient bool
		want    string
	}{
		"no pod yet":                  {objects{job: &batchv1.Job{}}, true, ""},
		"suspended by another":        {objects{job: suspended}, true, suspendedWords},
		"suspended by Sortie":         {objects{job: withdrawn}, true, ""},
		"unschedulable":               {unscheduled, true, "Unschedulable: 0/3 nodes are available"},
		"unschedulable for long":      {unscheduled, false, ""}, // a fault has the words
		"creating":                    {waits("ContainerCreating", ""), true, ""},
		"its Secret is created later": {waits("CreateContainerConfigError", `secret "name-x" not found`), true, ""},
		"registry does not answer":    {waits("ErrImagePull", "i/o timeout"), true, "ErrImagePull: i/o timeout"},
	} {
		s := row.o.status("c", place{"n", "name", "uid"}, row.patient)
		if s.Waiting != row.want {
			t.Errorf("%s: got %q, want %q", name, s.Waiting, row.want)
		}
	}
}

func TestGoneSince(t *testing.T) {
	t.Parallel()
	g, a, b := goneSince{}, place{uid: "a"}, place{uid: "b"}
	for i, test := range []struct {
		gone   []place
		minute int
		want   int
	}{{[]place{a}, 0, 0}, {[]place{a, b}, 9, 0}, {[]place{a, b}, 10, 1}, {[]place{b}, 19, 1}, {[]place{a}, 20, 0}} {
		if due := g.due(test.gone, noon.Add(time.Duration(test.minute)*time.Minute), 10*time.Minute); len(due) != test.want {
			t.Errorf("step %d: got %v due, want %d", i, due, test.want)
		}
	}
}
