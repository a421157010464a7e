package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/sdk/go/client"
)

func TestConfigIsPrintedWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "https://user:s3cret@sortie.example.org", "https://s3cret:%zz"} {
		c := client.Config{URL: url, Token: "s3cret-token"}
		var text bytes.Buffer
		fmt.Fprintf(&text, "%v %+v %#v %s %v\n", c, c, c, c, &c)
		for _, log := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&text, nil)} {
			slog.New(log).Info("started", "config", c)
		}
		if encoded, err := json.Marshal(struct{ Token client.Config }{client.Config{Token: "s3cret-token"}}); err != nil || strings.Contains(string(encoded), "s3cret") {
			t.Errorf("got %s, %v", encoded, err)
		}
		if strings.Contains(text.String(), "s3cret") || !strings.Contains(text.String(), "client of ") {
			t.Errorf("%q: got %s", url, text.String())
		}
	}
}
