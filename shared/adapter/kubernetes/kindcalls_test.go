package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// TestCallsAreThoseOfClientGo compares the requests and results of all calls with those of
// the client that client-go generates.
func TestCallsAreThoseOfClientGo(t *testing.T) {
	t.Parallel()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, fmt.Sprintf("%s %s %s %s %q", r.Method, r.URL, r.Header["Accept"], r.Header["Content-Type"], body))
		w.Header().Set("Content-Type", "application/json")
		answer := `{"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a", "uid": "1"}}`
		switch {
		case r.URL.Query().Has("watch"):
			answer = `{"type": "ADDED", "object": ` + answer + `}`
		case r.URL.Query().Has("labelSelector"):
			answer = `{"kind": "JobList", "apiVersion": "batch/v1", "items": [` + answer + `]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	client, err := newCalls(&rest.Config{Host: server.URL, QPS: 100, Burst: 100})
	if err != nil {
		t.Fatal(err)
	}
	generated := gentype.NewClientWithList("jobs", client.batch, parameters, "sortie",
		func() *batchv1.Job { return &batchv1.Job{} }, func() *batchv1.JobList { return &batchv1.JobList{} }, gentype.PrefersProtobuf[*batchv1.Job]())
	want := everyCall(t.Context(), generated)
	if slices.ContainsFunc(want, func(result any) bool { text, ok := result.(string); return ok && text != "<nil>" }) {
		t.Fatalf("got results\n%v\nwant no errors", want)
	}
	wanted := slices.Clone(requests)
	requests = nil
	if got := everyCall(t.Context(), client.Jobs("sortie")); !reflect.DeepEqual(got, want) {
		t.Errorf("got results\n%v\nwant\n%v", got, want)
	}
	if len(wanted) != 7 || !slices.Equal(requests, wanted) {
		t.Errorf("got requests\n%q\nwant\n%q", requests, wanted)
	}
}

// everyCall makes each call with each option and returns the results.
func everyCall(ctx context.Context, c Calls[*batchv1.Job, *batchv1.JobList]) (results []any) {
	all := []string{metav1.DryRunAll}
	list := metav1.ListOptions{LabelSelector: "a=b", TimeoutSeconds: new(int64(30)), ResourceVersion: "7"}
	add := func(result any, err error) { results = append(results, result, fmt.Sprint(err)) }
	add(c.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{DryRun: all, FieldManager: "m"}))
	add(c.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "7"}))
	add(c.List(ctx, list))
	add(c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{DryRun: all}))
	add(c.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status"))
	add(nil, c.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground), GracePeriodSeconds: new(int64(9))}))
	changes, err := c.Watch(ctx, list)
	add(nil, err)
	if err == nil {
		defer changes.Stop()
		add(<-changes.ResultChan(), nil)
	}
	return results
}
