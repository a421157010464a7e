//go:build kubernetes

package kubernetes_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sortie-dev/sortie/local/proof/kubernetes"
	adapter "github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// serviceAccount returns a kubeconfig with a token of the service account in rbac.yaml, in the
// namespace.
func serviceAccount(t *testing.T, c *kubernetes.Cluster, admin clients.Interface, namespace string) string {
	t.Helper()
	s := &system{admin: admin, namespace: namespace}
	s.authorize(t, c)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sortie"}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, c, admin, namespace, "sortie")
}

// kubeconfigOf returns a kubeconfig with a token of a service account.
func kubeconfigOf(t *testing.T, c *kubernetes.Cluster, admin clients.Interface, namespace, account string) string {
	t.Helper()
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["east"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos["sortie"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "sortie"}
	config.CurrentContext = "east"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMachinesOfAFunction runs pods as AWS functions do: with a kubeconfig as text, the rights
// of rbac.yaml, and without a watch.
func TestMachinesOfAFunction(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	namespace := namespace(t, admin, "function")
	config, err := adapter.ConfigOf(serviceAccount(t, c, admin, namespace), false)
	if err != nil {
		t.Fatal(err)
	}
	client, err := adapter.ConnectWith(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := adapter.NewCurrent(adapter.Config{
		Cluster: "east", Orchestrator: "function", Namespaces: []string{namespace}, KeepFor: time.Nanosecond, Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}, func(context.Context) (adapter.Client, error) { return client, nil })
	if err != nil {
		t.Fatal(err)
	}
	listed := func() (all []string) {
		t.Helper()
		if err := r.List(t.Context(), func(m port.MachineStatus) bool { all = append(all, m.Name); return true }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	launch := func(name, script string) port.MachineStatus {
		t.Helper()
		spec := job(name, script)
		spec.Runner, spec.Settings = platform.RunnerKubernetes, &platform.KubernetesSettings{}
		m, err := r.Launch(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	ended, stopped := launch("ended", "echo words; exit 3"), launch("stopped", forever)
	if err := r.Stop(t.Context(), stopped.Machine, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	for m, code := range map[port.Machine]int{ended.Machine: 3, stopped.Machine: 0} {
		now, err := r.Wait(t.Context(), m, port.MachineGone, time.Minute)
		if err != nil || now.Exit == nil || now.Exit.Code != code || now.Exit.Requested != (m == stopped.Machine) {
			t.Errorf("got %+v, %v, want exit code %d", now, err, code)
		}
	}
	if text, err := r.Logs(t.Context(), ended.Machine); err != nil || strings.TrimSpace(string(text)) != "words" {
		t.Errorf("got log %q, %v, want words", text, err)
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("got machines %v, want none that runs", got)
	}
	listed() // List deletes the Jobs that have been gone for Keep
	(stage{}).await(t, "deleted Jobs", func() bool {
		jobs, err := admin.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(jobs.Items) == 0
	})
}
