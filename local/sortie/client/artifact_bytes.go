package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// answerLimit limits a JSON document, in bytes.
const answerLimit = 32 << 20

// uploadRate is the lowest rate at which a server reads a body, in bytes a second.
const uploadRate = 100_000

// PutArtifact stores size bytes of content with a media type; the query describes it. It is
// safe to repeat.
func (c *Client) PutArtifact(ctx context.Context, query url.Values, mediaType string, content io.ReaderAt, size int64) (contract.ArtifactCreated, error) {
	return ask[contract.ArtifactCreated](ctx, c, call{
		method: http.MethodPost, path: "v1/artifacts", query: query, header: http.Header{"Content-Type": {mediaType}},
		file: content, size: size, wait: time.Duration(size/uploadRate) * time.Second, repeat: true,
	})
}

// GetArtifact writes the content of an artifact and returns its media type. A JSON document is
// in canonical form. GetArtifact verifies the content against the id, which may be a digest. It
// does not retry after it has written something.
func (c *Client) GetArtifact(ctx context.Context, id string, to io.Writer) (mediaType string, err error) {
	var resp *http.Response
	what := call{method: http.MethodGet, path: "v1/artifacts/" + url.PathEscape(id), header: http.Header{"Accept": {"*/*"}}}
	err = c.retry(ctx, func() (err error) {
		resp, err = c.api.Open(ctx, what.request()) //nolint:bodyclose // closed below
		return err
	})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	content := io.Reader(resp.Body)
	mediaType = resp.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil && kind == "application/json" {
		if content, err = documentIn(resp.Body); err != nil {
			return "", err
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), content); err != nil {
		return "", c.failure(ctx, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != id && "sha256:"+got != id {
		return "", fmt.Errorf("the content of the artifact %s has the SHA-256 %s: it was changed on the way", id, got)
	}
	return mediaType, nil
}

// documentIn returns the content of a JSON document in the response.
func documentIn(answer io.Reader) (io.Reader, error) {
	var document contract.Artifact
	if err := json.NewDecoder(io.LimitReader(answer, answerLimit)).Decode(&document); err != nil {
		return nil, fmt.Errorf("cannot read the artifact: %w", err)
	}
	return bytes.NewReader(document.Content), nil
}
