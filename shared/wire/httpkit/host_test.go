package httpkit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		address, public string
		token           bool
		loopback, fails bool
	}{
		{"127.0.0.1:8080", "", false, true, false},
		{"127.1.2.3:0", "", false, true, false},
		{"[::1]:8080", "", false, true, false},
		{"localhost:8080", "", false, true, false},
		{":8080", "", false, false, true},
		{"0.0.0.0:8080", "", false, false, true},
		{"[::]:8080", "", false, false, true},
		{"192.168.1.2:80", "", false, false, true},
		{"example.com:80", "", false, false, true},
		{"0.0.0.0:8080", "", true, false, false},
		{"127.0.0.1:8080", "", true, true, false},
		{"8080", "", true, false, true},
		{"127.0.0.1:8080", "http://localhost:9000", false, true, false},
		{"127.0.0.1:8080", "http://[::1]:9000/stage", false, true, false},
		{"127.0.0.1:8080", "https://sortie.example", false, false, true},
		{"127.0.0.1:8080", "https://127.0.0.1.example", false, false, true},
		{"127.0.0.1:8080", "http://host.docker.internal:8080", false, false, true},
		{"127.0.0.1:8080", "http://0.0.0.0:8080", false, false, true},
		{"127.0.0.1:8080", "https://sortie.example", true, true, false},
	} {
		loopback, err := httpkit.CheckAddress(row.address, row.public, row.token)
		if loopback != row.loopback || (err != nil) != row.fails {
			t.Errorf("%s as %q with token %v: got loopback %v, %v, want %v and an error: %v", row.address, row.public, row.token, loopback, err, row.loopback, row.fails)
		}
	}
}

func TestLoopbackHost(t *testing.T) {
	t.Parallel()
	handler := httpkit.LoopbackHost(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"127.0.0.1:4280": 204, "localhost": 204, "[::1]:1": 204, "LOCALHOST:80": 204,
		"evil.example": 403, "127.0.0.1.evil.example:4280": 403, "": 403, "192.168.1.2": 403, "0.0.0.0:80": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/apps", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: got %d, want %d", host, w.Code, want)
		}
	}
}
