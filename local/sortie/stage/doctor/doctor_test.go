package doctor_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sortie-dev/sortie/local/proof/doctortest"
	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/sortie/stage/doctor"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// nowhere is a DNS without names.
type nowhere struct{}

var errNoName = errors.New("no such host")

// LookupCNAME implements doctor.Resolver.
func (nowhere) LookupCNAME(context.Context, string) (string, error) { return "", errNoName }

// LookupHost implements doctor.Resolver.
func (nowhere) LookupHost(context.Context, string) ([]string, error) { return nil, errNoName }

// TestEachCheckHasATimeLimit uses an account that answers only the first call.
func TestEachCheckHasATimeLimit(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), "GetCallerIdentity") {
			_, _ = io.WriteString(w, "<R><GetCallerIdentityResult><Account>1</Account><Arn>arn:aws:iam::1:root</Arn></GetCallerIdentityResult></R>")
			return
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	made, err := template.Parse(doctortest.Prod{Secrets: []string{"clients"}, Mail: "ops@example.org"}.JSON())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	doctor.Run(t.Context(), doctor.Config{
		Stage: "dev", Settings: "cdk.json", Assembly: &stage.Assembly{Template: made}, Limit: 20 * time.Millisecond,
		AWS: aws.Config{
			Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		},
		HTTP: server.Client(), DNS: nowhere{}, Clock: clock.System{},
	}, func(f doctor.Finding) {
		found = append(found, string(f.Status)+" "+f.Check)
		if f.Status == doctor.Unknown && !strings.Contains(f.Detail, "no answer in time") && !strings.Contains(f.Detail, "the stack could not be read") {
			t.Errorf("got %v, want the time limit", f)
		}
	})
	want := "ok settings, ok credentials, unknown bootstrap, unknown concurrency, unknown stack, unknown secret clients, unknown mail, unknown api"
	if got := strings.Join(found, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
