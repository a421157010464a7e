package mail_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/mail"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// trusted is the file of the certificate that this process trusts.
var trusted = filepath.Join(os.TempDir(), fmt.Sprintf("sortie-mail-%d.pem", os.Getpid()))

func TestMain(m *testing.M) {
	if _, err := outside.Certificate(trusted); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", trusted); err != nil {
		panic(err)
	}
	stacktest.Main(m, os.Args, os.Environ(), nil)
}

const shell = "programs/sh:latest"

// late returns the job file of the nightly report with a shell in place of Python, which waits for a
// file, an expected time of a second, and a mail server in place of the example's.
func late(t *testing.T, file string, port int) string {
	t.Helper()
	text, err := os.ReadFile("../nightly-report.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	actions := d["actions"].(map[string]any)         //nolint:forcetypeassert // of the file
	onLate := actions["onLate"].(map[string]any)     //nolint:forcetypeassert // of the file
	to := onLate["parameters"].(map[string]any)      //nolint:forcetypeassert // of the file
	constraints := d["constraints"].(map[string]any) //nolint:forcetypeassert // of the file
	to["host"], to["port"] = "127.0.0.1", port       // a server with STARTTLS
	constraints["maxExpectedRunTime"] = "1s"         // of 20 minutes
	d["actions"] = map[string]any{"onLate": onLate}  // the others need secrets
	d["image"], d["command"] = shell, []string{"-c", `until [ -e "$0" ]; do sleep 0.05; done; echo report >report.txt`, file}
	delete(d, "after")
	document, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// TestLateReportSendsMail runs the nightly report for longer than expected. It gets one e-mail while it
// still runs, and completes afterwards.
func TestLateReportSendsMail(t *testing.T) {
	t.Parallel()
	certificate, err := outside.Certificate(trusted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(trusted) })
	box, file := mail.Serve(t, certificate), filepath.Join(t.TempDir(), "go")
	log := &stacktest.Log{}
	config, err := stacktest.Config{
		Data: filepath.Join(t.TempDir(), "data"), Settings: suite.Settings(), Images: map[string][]string{shell: {"/bin/sh"}},
	}.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil || t.Failed() {
			t.Logf("stopped with %v; the log:\n%s", err, log)
		}
	})
	client := &outside.Client{T: t, URL: s.Addresses().URL, Token: s.Token()}
	const path = "/v1/jobs/nightly-report"
	if answer := client.Call("PUT", path, late(t, file, box.Port)); answer.Status != 201 {
		t.Fatalf("got %d %s, want a stored job", answer.Status, answer.Body)
	}
	accepted := outside.Decode[contract.RunAccepted](t, client.Call("POST", path+"/runs", "").Body)
	await.Until(t, "an e-mail about the late report", func() bool { return len(box.Messages()) > 0 })
	if r := outside.Get[contract.Task](client, "/v1/runs/"+accepted.RunID); r.State != "Running" {
		t.Errorf("got %s after the e-mail, want Running", r.State)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the end of the report", func() bool {
		r := outside.Get[contract.Task](client, "/v1/runs/"+accepted.RunID)
		return r.State == "Completed"
	})
	got := box.Messages()
	if len(got) != 1 || got[0].From != "reports@example.org" || got[0].To != "ops@example.org" || !strings.Contains(got[0].Subject, "nightly-report") ||
		!strings.Contains(got[0].ID, accepted.TaskID+"-onLate") || !strings.Contains(got[0].Text, accepted.RunID) {
		t.Errorf("got %+v, want one e-mail about %s", got, accepted.RunID)
	}
}
