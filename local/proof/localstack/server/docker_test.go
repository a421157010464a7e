package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The test compares the arguments, because not every host has a Docker engine.
func TestContainerArguments(t *testing.T) {
	t.Parallel()
	got := Docker{Plugin: "/cache/plugin"}.args(Server{Port: 4599, Dir: "/cache/server"}, "sortie-localstack-4599")
	want := []string{
		"run", "--detach", "--rm", "--name", "sortie-localstack-4599", "--network", "host",
		"--volume", "/cache/plugin:/opt/sortie:ro", "--env", "PYTHONPATH=/opt/sortie", "--volume", "/cache/server:/cache/server:ro",
		"--env", "GATEWAY_LISTEN=127.0.0.1:4599",
		"--env", "DISABLE_EVENTS=1", "--env", "SKIP_SSL_CERT_DOWNLOAD=1", "--env", "DNS_ADDRESS=0", "--env", "DISABLE_CORS_CHECKS=1", "--env", "TZ=UTC",
		"--env", "LAMBDA_RUNTIME_EXECUTOR=local-process", "--env", "LAMBDA_SYNCHRONOUS_CREATE=1", "--env", "LAMBDA_RETRY_BASE_DELAY=1",
		"--env", "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.1", "--env", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1",
		"--env", "S3_SKIP_SIGNATURE_VALIDATION=0", "--env", "PROVIDER_OVERRIDE_DYNAMODB=v2", "--env", "DYNAMODB_IN_MEMORY=1",
		"--env", "DYNAMODB_LOCAL_PORT=5601", "--env", "DYNAMODB_SHARE_DB=1", "--env", "LS_LOG=warning", "--env", "SORTIE_FUNCTIONS_TRUST=/cache/server/trusted.pem",
		"localstack/localstack:4.14.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// This docker command does not know the image and reports every container as running.
func TestContainerFailsToStart(t *testing.T) {
	t.Parallel()
	s, _, _ := setup(t)
	calls := filepath.Join(t.TempDir(), "calls")
	docker := fake(t, `echo "$1" >>`+calls+`
case $1 in run) echo 'manifest unknown'; exit 125;; inspect) echo true;; esac`)
	err := s.Start(t.Context(), Docker{Docker: docker, Plugin: "/plugin"})
	if err == nil || !strings.Contains(err.Error(), "manifest unknown") {
		t.Errorf("error %v", err)
	}
	text, err := os.ReadFile(calls)
	if err != nil || string(text) != "run\ninspect\nrm\n" {
		t.Errorf("called %q, %v", text, err)
	}
}

func TestContainerEndsAtOnce(t *testing.T) {
	t.Parallel()
	s, _, _ := setup(t)
	docker := fake(t, `case $1 in inspect) echo false;; logs) echo 'license is wanted';; esac`)
	err := s.Start(t.Context(), Docker{Docker: docker, Plugin: "/plugin"})
	if err == nil || !strings.Contains(err.Error(), "license is wanted") {
		t.Errorf("error %v", err)
	}
}

// fake returns the path of a docker command with this shell script as its body.
func fake(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "docker")
	// A fork while the file is open for writing would make the file busy.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}
