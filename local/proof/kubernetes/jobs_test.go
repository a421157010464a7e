//go:build kubernetes

package kubernetes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// system is a stack in its own process, with a namespace of the cluster.
type system struct {
	*outside.Client
	admin     clients.Interface
	namespace string
	given     stacktest.Config
	process   *stacktest.Process
}

// serve starts a stack with a pool "pods" on the cluster. The stack has the rights of
// rbac.yaml.
func serve(t *testing.T, c *kubernetes.Cluster, admin clients.Interface, change ...func(*stacktest.Config)) *system {
	t.Helper()
	s := &system{admin: admin, namespace: namespace(t, admin, "system")}
	s.given = stacktest.Config{Data: t.TempDir(), Settings: map[string]string{
		"SORTIE_KUBERNETES_CONFIG": s.authorize(t, c), "SORTIE_KUBERNETES_NAMESPACES": s.namespace, "SORTIE_FURTHER_STARTS": "0",
	}}
	for _, change := range change {
		change(&s.given)
	}
	s.start(t)
	t.Cleanup(func() {
		if _, err := s.process.End(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	if got := s.Call(http.MethodPut, "/v1/pools/pods", `{"limit": 0, "runner": "kubernetes"}`); got.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a new pool", got.Status, got.Body)
	}
	return s
}

func (s *system) start(t *testing.T) {
	t.Helper()
	log := &stacktest.Log{}
	var err error
	if s.process, err = stacktest.Launch(s.given, log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the stack:\n%s", log)
		}
		if err := log.Secrets(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.process.Ready():
	case <-s.process.Ended():
		t.Fatalf("the stack does not start:\n%s", log)
	}
	s.Client = &outside.Client{T: t, URL: s.process.Addresses().URL, Timeout: time.Minute}
}

// authorize grants the rights of rbac.yaml to its service account in the namespace. It returns
// the file of a kubeconfig for that account.
func (s *system) authorize(t *testing.T, c *kubernetes.Cluster) string {
	t.Helper()
	file, err := os.Open(filepath.FromSlash("../../../shared/adapter/kubernetes/rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var role rbacv1.Role
	for documents := yaml.NewYAMLOrJSONDecoder(file, 1<<10); role.Kind != "Role"; {
		if err := documents.Decode(&role); err != nil {
			t.Fatal(err)
		}
	}
	role.Namespace, role.ResourceVersion = s.namespace, ""
	if _, err := s.admin.RbacV1().Roles(s.namespace).Create(t.Context(), &role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "sortie"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "sortie", Namespace: s.namespace}},
	}
	if _, err := s.admin.RbacV1().RoleBindings(s.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(c.Dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos["admin"].Impersonate = "system:serviceaccount:" + s.namespace + ":sortie"
	to := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// define stores a job with an image, a script and further fields, in JSON.
func (s *system) define(id, image, script, fields string) {
	s.T.Helper()
	document := fmt.Sprintf(`{"image": %q, "command": [%q], "pool": "pods", "podSpec": {"enableServiceLinks": false}%s}`, image, script, fields)
	if strings.Contains(fields, "podSpec") {
		document = fmt.Sprintf(`{"image": %q, "command": [%q], "pool": "pods"%s}`, image, script, fields)
	}
	if got := s.Call(http.MethodPut, "/v1/jobs/"+id, document); got.Status != http.StatusCreated {
		s.T.Fatalf("got %d %s, want a new job", got.Status, got.Body)
	}
}

// run runs a job and returns its task.
func (s *system) run(id string) string {
	s.T.Helper()
	got := s.Call(http.MethodPost, "/v1/jobs/"+id+"/runs", `{}`)
	if got.Status != http.StatusAccepted {
		s.T.Fatalf("got %d %s, want a run", got.Status, got.Body)
	}
	return outside.Decode[struct {
		TaskID string `json:"taskId"`
	}](s.T, got.Body).TaskID
}

// log returns the stored log of a task.
func (s *system) log(task string) string {
	s.T.Helper()
	return string(s.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", "").Body)
}

// pod returns the live pod of a task's machine.
func (s *system) pod(task string) *corev1.Pod {
	s.T.Helper()
	machine := outside.Get[contract.Task](s.Client, "/v1/tasks/"+task).Machine
	if machine == nil {
		s.T.Fatalf("got no machine of %s", task)
	}
	name, _, _ := strings.Cut(machine.ID, ".")
	found, err := s.admin.CoreV1().Pods(s.namespace).List(s.T.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
	if err != nil || len(found.Items) != 1 {
		s.T.Fatalf("got %d pods of %s, %v, want 1", len(found.Items), name, err)
	}
	return &found.Items[0]
}

// TestJobs runs jobs of a stack on the cluster.
func TestJobs(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	s := serve(t, c, admin)
	const once = `, "retryConfig": {"maxRetries": 0}`
	s.define("output", wrapped, `echo hello; printf text >"$SORTIE_OUTPUT"`, `, "output": {"path": "out.txt"}`)
	s.define("fails", shell, "echo broken; exit 3", once)
	s.define("cancelled", shell, forever, once)
	s.define("endless", shell, forever, once+`, "policy": {"timeLimitSeconds": 3}`)
	s.define("retried", shell, "exit 9", `, "retryConfig": {"maxRetries": 1, "initialDelay": "1s"}, "exitCodes": {"retry": [9]}`)
	s.define("no-image", noImage, "exit 0", once)
	s.define("no-node", shell, "exit 0", once+`, "podSpec": {"nodeSelector": {"disk": "none"}}`)
	tasks := map[string]string{}
	for _, id := range []string{"output", "fails", "cancelled", "endless", "retried", "no-image", "no-node"} {
		tasks[id] = s.run(id)
	}
	s.Running(tasks["cancelled"])
	if pod := s.pod(tasks["cancelled"]); pod.Labels["job-id"] != "cancelled" || pod.Annotations["run-id"] == "" {
		t.Errorf("got labels %v and annotations %v, want the job and the run", pod.Labels, pod.Annotations)
	}
	if got := s.Call(http.MethodPost, "/v1/tasks/"+tasks["cancelled"]+"/cancel", `{}`); got.Status != http.StatusAccepted {
		t.Errorf("got %d %s, want the cancel request accepted", got.Status, got.Body)
	}
	for id, want := range map[string]struct{ state, code, words string }{
		"output": {state: "Completed"}, "cancelled": {state: "Cancelled"},
		"fails": {"Failed", "PROGRAM_EXIT", "exited with code 3"}, "endless": {"Failed", "RUN_TIMEOUT", ""}, "retried": {"Failed", "PROGRAM_EXIT", "exited with code 9"},
		"no-image": {"Failed", "IMAGE", "not found"}, "no-node": {"Failed", "CAPACITY", "0/"},
	} {
		got := s.End(tasks[id])
		if got.State != want.state || got.ErrorCode != want.code && want.code != "" || !strings.Contains(got.Error, want.words) {
			t.Errorf("%s: got %s %s %q, want %+v", id, got.State, got.ErrorCode, got.Error, want)
		}
	}
	if got := s.Call(http.MethodGet, "/download/"+tasks["output"], ""); string(got.Body) != "text" {
		t.Errorf("got output %d %s, want the file of the program", got.Status, got.Body)
	}
	for id, want := range map[string]string{"output": "hello", "fails": "broken"} {
		if got := s.log(tasks[id]); !strings.Contains(got, want) {
			t.Errorf("%s: got log %s, want %q", id, got, want)
		}
	}
	m := outside.Get[contract.Task](s.Client, "/v1/tasks/"+tasks["retried"])
	if m.Attempt != 2 || m.Measured.ExitCode == nil || *m.Measured.ExitCode != 9 || m.Measured.StartLatencySeconds <= 0 {
		t.Errorf("got attempt %d, figures %+v, want a second attempt, its exit code and its start latency", m.Attempt, m.Measured)
	}
	if n := m.Measured.KubernetesAPICalls; n < 2 || n != m.Measured.PlatformAPICalls {
		t.Errorf("got %d calls to the cluster of %d to platforms, want those of two attempts", n, m.Measured.PlatformAPICalls)
	}
}

// TestFallbackOfAPod checks that a run starts in the fallback pool if the cluster has no node
// for it.
func TestFallbackOfAPod(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	s := serve(t, c, admin)
	token, err := os.ReadFile(s.process.Addresses().TokenFile) // programs of the host need a token
	if err != nil {
		t.Fatal(err)
	}
	s.Token = strings.TrimSpace(string(token))
	if got := s.Call(http.MethodPut, "/v1/pools/near", `{"limit": 0, "runner": "process"}`); got.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a new pool", got.Status, got.Body)
	}
	if got := s.Call(http.MethodPut, "/v1/pools/pods", `{"limit": 0, "runner": "kubernetes", "settings": {"podDefaults": {"nodeSelector": {"disk": "none"}}}, "fallback": [{"pool": "near", "on": ["capacity"]}]}`); got.Status != http.StatusOK {
		t.Fatalf("got %d %s, want the pool changed", got.Status, got.Body)
	}
	s.define("moved", "exec:/bin/echo", "near", "")
	task := s.run("moved")
	if got := s.End(task); got.State != "Completed" || !strings.Contains(s.log(task), "near") {
		t.Errorf("got %+v, want a run in the other pool", got)
	}
}
