package kubernetes_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestCallsAreCounted reads a Job with a context of a run, and without one.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client, err := kubernetes.ConnectWith(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var calls port.Calls
	for range 2 {
		if _, err := client.Jobs("sortie").Get(port.WithCalls(t.Context(), &calls), "a", meta.GetOptions{}); err == nil {
			t.Fatal("got a Job, want none")
		}
	}
	if _, err := client.Jobs("sortie").Get(t.Context(), "a", meta.GetOptions{}); err == nil {
		t.Fatal("got a Job, want none")
	}
	if got, want := calls.Take(), map[string]int{"kubernetes": 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("got calls %v, want %v", got, want)
	}
}
