package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// testClient returns a client whose requests serve answers.
func testClient(t *testing.T, serve http.HandlerFunc, change ...func(*Config)) *Client {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	config := Config{URL: server.URL, Token: "secret"}
	for _, f := range change {
		f(&config)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEachOperationHasAMethod calls the method of each operation and checks its request.
func TestEachOperationHasAMethod(t *testing.T) {
	t.Parallel()
	for id, operation := range operations {
		verb, path, name := operation[0], operation[1], operation[2]
		group, method, _ := strings.Cut(name, ".")
		var seen []string
		c, err := New(Config{URL: "http://sortie.test", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.Method+" "+r.URL.Path)
			answer := httptest.NewRecorder()
			if strings.Contains(r.Header.Get("Accept"), "event-stream") {
				_, _ = io.WriteString(answer, "id: 1\nevent: end\ndata: {}\n\n")
			} else {
				_, _ = io.WriteString(answer, "{}")
			}
			response := answer.Result()
			response.Request = r
			return response, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		f := reflect.ValueOf(c).Elem().FieldByName(group).MethodByName(method)
		if !f.IsValid() {
			t.Errorf("%s: got no method %s", id, name)
			continue
		}
		want := verb + " " + strings.NewReplacer("{version}", "1", "{format}", "x").Replace(path)
		for strings.Contains(want, "{") {
			before, rest, _ := strings.Cut(want, "{")
			_, after, _ := strings.Cut(rest, "}")
			want = before + "x" + after
		}
		if got := use(t, f); id == "connectEvents" {
			seen = []string{"GET " + strings.TrimPrefix(strings.TrimSuffix(got, "?gap=fail"), "ws://sortie.test")}
		}
		if len(seen) != 1 || seen[0] != want {
			t.Errorf("%s: got %q, want %q", id, seen, want)
		}
	}
}

// use calls a method with small arguments and reads the first item of a list or a stream. It
// returns the first result if that is a text.
func use(t *testing.T, f reflect.Value) string {
	t.Helper()
	of := f.Type()
	var arguments []reflect.Value
	for i := range of.NumIn() {
		in := of.In(i)
		switch {
		case of.IsVariadic() && i == of.NumIn()-1:
		case in == reflect.TypeFor[context.Context]():
			arguments = append(arguments, reflect.ValueOf(t.Context()))
		case in.Kind() == reflect.String:
			arguments = append(arguments, reflect.ValueOf("x").Convert(in))
		case in.Kind() == reflect.Int64:
			arguments = append(arguments, reflect.ValueOf(int64(1)))
		case in.Kind() == reflect.Pointer:
			arguments = append(arguments, reflect.New(in.Elem()))
		case in.Kind() == reflect.Interface:
			arguments = append(arguments, reflect.ValueOf(map[string]any{}))
		default:
			arguments = append(arguments, reflect.Zero(in))
		}
	}
	result := f.Call(arguments)[0]
	for _, name := range []string{"Page", "All"} {
		if next := result; next.Kind() == reflect.Pointer && next.MethodByName(name).IsValid() {
			result = next.MethodByName(name).Call([]reflect.Value{reflect.ValueOf(t.Context())})[0]
			break
		}
	}
	if result.Kind() == reflect.Func {
		for range result.Seq2() {
			break
		}
	}
	if result.Kind() == reflect.String {
		return result.String()
	}
	return ""
}
