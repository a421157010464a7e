package roles

import (
	"bytes"
	"io"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
)

// cloud is the endpoint of AWS. It authorizes each call with IAM and passes it to its service.
type cloud struct {
	iam       *awsfake.IAM
	table     aws.HTTPClient
	states    aws.HTTPClient
	schedules aws.HTTPClient
	*services
}

// ServeHTTP implements http.Handler.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if denied := c.iam.Authorize(r, body); denied != nil { //nolint:bodyclose // it is in memory
		reply(w, denied)
		return
	}
	switch awsfake.ServiceOf(r) {
	case "dynamodb":
		forward(w, r, body, c.table)
	case "states":
		forward(w, r, body, c.states)
	case "scheduler":
		forward(w, r, body, c.schedules)
	case "lambda":
		c.invoke(w, r, body)
	case "execute-api":
		c.sockets.ServeHTTP(w, r)
	default:
		c.answer(w, r, body)
	}
}

// forward passes a call to a fake.
func forward(w http.ResponseWriter, r *http.Request, body []byte, to aws.HTTPClient) {
	call := r.Clone(r.Context())
	call.Body, call.RequestURI = io.NopCloser(bytes.NewReader(body)), ""
	response, err := to.Do(call) //nolint:bodyclose // it is in memory
	if err != nil {
		panic(http.ErrAbortHandler) // a broken connection
	}
	reply(w, response)
}

func reply(w http.ResponseWriter, response *http.Response) {
	defer func() { _ = response.Body.Close() }()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}
