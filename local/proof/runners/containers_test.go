//go:build containers

package runners_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/runners"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/twin/stack"
)

// engine is a client of the engine in DOCKER_HOST, which "make test-containers" starts.
type engine struct{ *http.Client }

func connect(t *testing.T) engine {
	t.Helper()
	socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok {
		t.Fatal("no container engine: run make test-containers, or set DOCKER_HOST to unix://PATH")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return engine{&http.Client{Transport: transport}}
}

// call calls the engine and returns the body of its answer.
func (e engine) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.41"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-tar")
	got, err := e.Do(request)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(got.Body)
	if closed := got.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && got.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s: %s", got.Status, text.String())
	}
	return text.Bytes(), err
}

// build builds the images.
func (e engine) build(t *testing.T) {
	t.Helper()
	archive := runners.FileSystem(t, "../../..")
	for image, entrypoint := range runners.Entrypoints() {
		command, err := json.Marshal(entrypoint)
		if err != nil {
			t.Fatal(err)
		}
		query := url.Values{"fromSrc": {"-"}, "repo": {image}, "changes": {"ENTRYPOINT " + string(command), "WORKDIR " + runners.Folder, "USER " + runners.User}}
		if _, err := e.call(t.Context(), http.MethodPost, "/images/create?"+query.Encode(), archive); err != nil {
			t.Fatalf("cannot make the image %s: %v", image, err)
		}
	}
}

// left returns the containers of a task.
func (e engine) left(ctx context.Context, _ stack.Addresses, task string) (left []string, err error) {
	text, err := e.call(ctx, http.MethodGet, "/containers/json?all=true&filters="+url.QueryEscape(`{"label":["dev.sortie.run=`+task+`"]}`), nil)
	if err != nil {
		return nil, err
	}
	var found []struct{ ID, State string }
	err = json.Unmarshal(text, &found)
	for _, c := range found {
		left = append(left, "container "+c.ID+" is "+c.State)
	}
	return left, err
}

// TestRealContainers runs the job files in containers, with and without sortie-exec in their
// images.
func TestRealContainers(t *testing.T) {
	t.Parallel()
	e := connect(t)
	e.build(t)
	given := stacktest.Config{Engine: os.Getenv("DOCKER_HOST")}
	const atOnce = 3 // an engine removes containers slowly
	t.Run("wrapped", func(t *testing.T) {
		differs := map[string]runners.Difference{"daemons-orphaned": {Reason: runners.FirstProcess}}
		runners.Run(t, runners.Platform{Runner: "container", Given: given, Left: e.left, AtOnce: atOnce, Differs: differs})
	})
	t.Run("plain", func(t *testing.T) {
		differs := runners.WithoutWrapper()
		differs["killed"] = runners.Difference{Reason: runners.FirstProcess}
		differs["out-of-memory"] = runners.Difference{Reason: "whether the engine says that memory was exhausted depends on its version of cgroups; TestRealMemoryLimit checks it"}
		runners.Run(t, runners.Platform{Runner: "container", Given: given, Left: e.left, AtOnce: atOnce, Plain: true, Differs: differs})
	})
}
