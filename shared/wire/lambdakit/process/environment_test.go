package process

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

func nothing(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }

// wire reads variables as a main does.
func wire(b *bench) {
	b.Need("SORTIE_TABLE")
	b.Option("SORTIE_BUS", "default")
	b.List("SORTIE_FLY_APPS", "app")
	b.NeedList("SORTIE_KEYS")
	b.Settings()
	b.Check(errors.New("made of nothing"))
	b.ServeTask(nothing)
}

func TestCheckNamesTheVariables(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"SORTIE_STAGE": "dev", "SORTIE_TABLE": "t", "SORTIE_KEYS": "a, b", "SORTIE_REGION": "fra", "SORTIE_OTHER": "x", "SORTIE_BUS": "",
		"AWS_REGION": "r",
	}, "-check")
	b.Need("SORTIE_TABLE")
	b.Option("SORTIE_BUS", "default")
	if keys := b.NeedList("SORTIE_KEYS"); len(keys) != 2 || keys[1] != "b" {
		t.Errorf("got keys %q", keys)
	}
	if apps := b.List("SORTIE_FLY_APPS", "app"); len(apps) != 1 || apps[0] != "app" {
		t.Errorf("got apps %q", apps)
	}
	if none := b.List("SORTIE_ORIGINS", ""); len(none) != 0 {
		t.Errorf("got %q without the variable, want nothing", none)
	}
	if c := b.Settings(); c.Region != "fra" || c.CPUs != 1 {
		t.Errorf("got settings %+v", c)
	}
	b.AWS()
	b.ServeTask(nothing)
	if want := "SORTIE_KEYS\nSORTIE_REGION\nSORTIE_STAGE\nSORTIE_TABLE\n"; b.code != 0 || b.out.String() != want || b.err.Len() > 0 || b.handler != nil {
		t.Errorf("got exit code %d, output %q, problems %q", b.code, &b.out, &b.err)
	}
}

func TestCheckNamesEveryProblem(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"SORTIE_KEYS": "a,,b", "SORTIE_MACHINE_CPUS": "many"}, "-check")
	wire(b)
	for _, says := range []string{"SORTIE_STAGE is not set\n", "SORTIE_TABLE is not set\n", `SORTIE_KEYS: "a,,b" has an empty`, "SORTIE_MACHINE_CPUS: "} {
		if !strings.Contains(b.err.String(), says) {
			t.Errorf("got no %q in %s", says, &b.err)
		}
	}
	if b.code != 2 || b.out.Len() > 0 || strings.Contains(b.err.String(), "nothing") {
		t.Errorf("got exit code %d and %s%s", b.code, &b.out, &b.err)
	}
	b = setup(t, map[string]string{"SORTIE_STAGE": "dev", "SORTIE_TABLE": "t", "SORTIE_KEYS": "a"}, "-check")
	wire(b)
	if b.code != 2 || b.err.String() != "made of nothing\n" {
		t.Errorf("got exit code %d and %s", b.code, &b.err)
	}
	b = setup(t, map[string]string{"SORTIE_STAGE": "dev", "SORTIE_TABEL": "t", "SORTIE_TABLE": "t", "SORTIE_KEYS": "a", "SORTIE_OTHER": "x"}, "-check")
	b.Need("SORTIE_TABLE")
	b.ServeTask(nothing)
	if want := "SORTIE_TABEL: unknown variable, did you mean SORTIE_TABLE?\n"; b.code != 2 || b.err.String() != want {
		t.Errorf("got exit code %d and %q, want 2 and %q", b.code, &b.err, want)
	}
	b = setup(t, deployed, "-help")
	b.ServeTask(nothing)
	if b.code != 1 || b.handler != nil {
		t.Errorf("unknown argument: got exit code %d, want 1", b.code)
	}
}

func TestMisconfiguredProcessDoesNotServe(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	wire(b)
	logs, _ := b.lines(t)
	if b.code != 1 || b.handler != nil || len(logs) != 1 || !strings.Contains(b.out.String(), "SORTIE_TABLE is not set") {
		t.Errorf("got exit code %d and log %s", b.code, &b.out)
	}
}

func TestAWSReadsLambdasVariables(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "session",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:5568",
	})
	config := b.AWS()
	got, err := config.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "id" || got.SecretAccessKey != "key" || got.SessionToken != "session" || got.CanExpire {
		t.Errorf("got credentials %+v (%v)", got, err)
	}
	if config.Region != "eu-central-1" || *config.BaseEndpoint != "http://127.0.0.1:4566" {
		t.Errorf("got configuration %+v", config)
	}
	if endpoint := dynamodb.NewFromConfig(config).Options().BaseEndpoint; endpoint == nil || *endpoint != "http://127.0.0.1:5568" {
		t.Errorf("dynamodb: got endpoint %v", endpoint)
	}
	if endpoint := secretsmanager.NewFromConfig(config).Options().BaseEndpoint; endpoint == nil || *endpoint != "http://127.0.0.1:4566" {
		t.Errorf("secretsmanager: got endpoint %v", endpoint)
	}
	config = setup(t, nil).AWS()
	if _, err := config.Credentials.Retrieve(t.Context()); err == nil || config.BaseEndpoint != nil {
		t.Errorf("without variables: got credentials or an endpoint (%v)", err)
	}
}

// TestConnectionsStayOpenBetweenBatches checks that a batch of parallel calls reuses the
// connections of the previous batch. The batch has more than the 32 calls that an adapter makes
// at once.
func TestConnectionsStayOpenBetweenBatches(t *testing.T) {
	t.Parallel()
	const atOnce = 32
	connections, gate := atomic.Int32{}, make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gate }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := setup(t, nil).AWS().HTTPClient
	batch := func() {
		var calls sync.WaitGroup
		for range atOnce {
			calls.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			})
		}
		for range atOnce {
			gate <- struct{}{}
		}
		calls.Wait()
	}
	batch()
	// On a busy host the transport can receive a response before it observes that the
	// request was written. It then closes the connection, so another batch may open a few.
	const batches = 5
	var opened int32
	for range batches {
		before := connections.Load()
		batch()
		if opened = connections.Load() - before; opened == 0 {
			return
		}
	}
	t.Errorf("got new connections for each of %d batches, %d for the last, want none", batches, opened)
}

// TestAnswerLimitAllowsARetry checks that a call on a broken connection is retried within the
// shortest timeout of a function, 28 s.
func TestAnswerLimitAllowsARetry(t *testing.T) {
	t.Parallel()
	client, ok := setup(t, nil).AWS().HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		t.Fatal("got another client than the SDK's")
	}
	if limit := client.GetTransport().ResponseHeaderTimeout; limit <= 0 || 2*limit > 28*time.Second {
		t.Errorf("got a limit of %s, want at most 14 s", limit)
	}
}
