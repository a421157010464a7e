package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// answerLimit limits an answer of AWS, in bytes.
const answerLimit = 4 << 20

// json calls an operation of an AWS JSON API. The SDK would add a package with all operations
// of the service for each such call.
func (e *exam) json(ctx context.Context, service, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	status, text, err := e.call(ctx, service, body, http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {target}})
	if err != nil {
		return err
	}
	if status/100 != 2 {
		var refused struct {
			Type    string `json:"__type"`  //nolint:tagliatelle // AWS's spelling
			Message string `json:"message"` // Message in some APIs; names are compared without case
		}
		if json.Unmarshal(text, &refused) != nil || refused.Type == "" {
			refused.Type = fmt.Sprintf("status %d", status)
		}
		_, name, found := strings.Cut(refused.Type, "#")
		if !found {
			name = refused.Type
		}
		return &smithy.GenericAPIError{Code: name, Message: refused.Message}
	}
	return json.Unmarshal(text, out)
}

// query calls an operation of an API that uses AWS's query protocol.
func (e *exam) query(ctx context.Context, service string, form url.Values, out any) error {
	status, text, err := e.call(ctx, service, []byte(form.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if err != nil {
		return err
	}
	if status/100 != 2 {
		var refused struct {
			Error struct{ Code, Message string }
		}
		if xml.Unmarshal(text, &refused) != nil {
			refused.Error.Code = ""
		}
		return &smithy.GenericAPIError{Code: cmp.Or(refused.Error.Code, fmt.Sprintf("status %d", status)), Message: refused.Error.Message}
	}
	return xml.Unmarshal(text, out)
}

// call signs and sends a request to a service of the region.
func (e *exam) call(ctx context.Context, service string, body []byte, header http.Header) (status int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint(service), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header = header
	keys, err := e.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		return 0, nil, err
	}
	digest := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, request, hex.EncodeToString(digest[:]), service, e.AWS.Region, e.Clock.Now()); err != nil {
		return 0, nil, err
	}
	answer, err := e.HTTP.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	return answer.StatusCode, text, err
}

// endpoint is the URL of a service.
func (e *exam) endpoint(service string) string {
	if e.AWS.BaseEndpoint != nil {
		return *e.AWS.BaseEndpoint + "/"
	}
	return "https://" + service + "." + e.AWS.Region + "." + e.suffix() + "/"
}

// suffix is the end of the names of AWS's hosts.
func (e *exam) suffix() string {
	if strings.HasPrefix(e.AWS.Region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}
