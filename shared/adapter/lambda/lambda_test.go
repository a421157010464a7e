package lambda_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sortie-dev/sortie/shared/adapter/lambda"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

const arn = "arn:aws:lambda:eu-central-1:210987654321:function:sortie-dev-dispatch"

// invoke invokes a function whose API responds with a status, and returns the request.
func invoke(t *testing.T, status int) (path, kind, body string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		path, kind, body = r.URL.Path, r.Header.Get("X-Amz-Invocation-Type"), string(text)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	f, err := lambda.New(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}, arn)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Invoke(t.Context(), map[string]string{"pool": "pool0"})
	return path, kind, body, err
}

func TestInvokeQueuesTheEvent(t *testing.T) {
	t.Parallel()
	path, kind, body, err := invoke(t, http.StatusAccepted)
	if want := "/2015-03-31/functions/" + arn + "/invocations"; err != nil || path != want || kind != "Event" || body != `{"pool":"pool0"}` {
		t.Errorf("got %s %s with %s, %v, want %s Event with the pool", path, kind, body, err, want)
	}
}

func TestRefusedInvocationIsUnavailable(t *testing.T) {
	t.Parallel()
	if _, _, _, err := invoke(t, http.StatusForbidden); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
}

func TestFunctionNeedsAnARN(t *testing.T) {
	t.Parallel()
	if _, err := lambda.New(aws.Config{}, ""); err == nil {
		t.Error("got no error for a function without an ARN")
	}
}
