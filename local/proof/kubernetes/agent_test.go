//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
)

// deployAgent applies the agent's manifests in its namespace. The API server refuses unknown
// fields.
func (s *system) deployAgent(c *kubernetes.Cluster) {
	s.T.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.FromSlash("../../../functions/watch/manifests"))
	if err != nil {
		s.T.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		s.T.Fatal(err)
	}
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.admin.Discovery()))
	for _, r := range made.Resources() {
		fields, err := r.Map()
		if err != nil {
			s.T.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: fields}
		object.SetNamespace(s.namespace)
		if subjects, ok, _ := unstructured.NestedSlice(fields, "subjects"); ok {
			subjects[0].(map[string]any)["namespace"] = s.namespace
			fields["subjects"] = subjects
		}
		kind, err := kinds.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			s.T.Fatal(err)
		}
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if _, err := client.Resource(kind.Resource).Namespace(s.namespace).Create(s.T.Context(), object, options); err != nil {
			s.T.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// agent is the watch agent in its own process, with its own rights.
type agent struct {
	*exec.Cmd
	log *lines
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startAgent starts the agent for the machines with the labels of the task's pod.
func (s *system) startAgent(kubeconfig, task, tenant string) *agent {
	s.T.Helper()
	self, err := os.Executable()
	if err != nil {
		s.T.Fatal(err)
	}
	pod := s.pod(task)
	if tenant == "" {
		tenant = pod.Annotations["sortie/tenant"]
	}
	a := &agent{exec.Command(self, "watch"), &lines{}}
	a.Stderr = a.log
	a.Env = []string{
		"SORTIE_URL=" + s.URL, "SORTIE_TOKEN_FILE=" + s.process.Addresses().TokenFile, "SORTIE_TENANT=" + tenant, "SORTIE_KUBERNETES_CLUSTER=local",
		"SORTIE_KUBERNETES_NAMESPACES=" + s.namespace, "SORTIE_ORCHESTRATOR=" + pod.Labels["sortie/orchestrator"],
		"SORTIE_KUBERNETES_CONFIG=" + kubeconfig, "SORTIE_HEALTH_ADDRESS=127.0.0.1:0",
	}
	if err := a.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { a.end(s.T, syscall.SIGKILL) })
	return a
}

// end ends the agent with a signal, once.
func (a *agent) end(t *testing.T, how syscall.Signal) {
	t.Helper()
	if a.ProcessState != nil {
		return
	}
	if err := a.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	err := a.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Error(err)
	}
}

// TestAgent has its own cluster and a stack that hardly sweeps. The agent reports the ended
// pods, so their runs end, even after a kill of the API server or of the agent. It does not
// report pods of another tenant.
func TestAgent(t *testing.T) {
	t.Parallel()
	c, admin := ownCluster(t)
	s := serve(t, c, admin, func(c *stacktest.Config) { c.Sweep = time.Hour })
	s.deployAgent(c)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(kubeconfigOf(t, c, admin, s.namespace, "sortie-watch")), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := folder(t)
	file := func(id string) string { return filepath.Join(dir, id) }
	tasks := map[string]string{}
	for i, id := range []string{"first", "second", "third"} {
		s.define(id, shell, until(file(id), i+3), `, "retryConfig": {"maxRetries": 0}`)
		tasks[id] = s.run(id)
	}
	for _, task := range tasks {
		s.Running(task)
	}
	ends := func(id string) {
		t.Helper()
		if err := os.WriteFile(file(id), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exits := func(id, words string) {
		t.Helper()
		if got := s.End(tasks[id]); got.State != "Failed" || got.ErrorCode != "PROGRAM_EXIT" || !strings.Contains(got.Error, words) {
			t.Errorf("%s: got %s %s %q, want a program that %s", id, got.State, got.ErrorCode, got.Error, words)
		}
	}

	other := s.startAgent(kubeconfig, tasks["first"], "other")
	a := s.startAgent(kubeconfig, tasks["first"], "")
	if err := c.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends("first")
	exits("first", "exited with code 3")
	a.end(t, syscall.SIGKILL)
	ends("second") // nothing reports it yet
	a = s.startAgent(kubeconfig, tasks["third"], "")
	exits("second", "exited with code 4")
	ends("third")
	exits("third", "exited with code 5")
	a.end(t, syscall.SIGTERM)
	if code := a.ProcessState.ExitCode(); code != 0 {
		t.Errorf("got exit code %d of the agent, want 0: %s", code, a.log)
	}
	if log := a.log.String(); !strings.Contains(log, `"result":"changed"`) || strings.Contains(log, "forbidden") {
		t.Errorf("got log %s, want a report that changed a run, with the rights of the manifests", log)
	}
	if log := other.log.String(); strings.Contains(log, "reported a machine") {
		t.Errorf("got log %s of another tenant's agent, want no report", log)
	}
	if got := s.Call(http.MethodGet, "/v1/tasks/"+tasks["second"], ""); !strings.Contains(string(got.Body), `"attempt":1`) {
		t.Errorf("got %s, want one attempt", got.Body)
	}
}
