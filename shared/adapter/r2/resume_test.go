package r2_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// bigParts is the number of parts of the copied objects.
const bigParts = 4

// copyist counts the copied parts and ends the context after a limit.
type copyist struct {
	http.RoundTripper
	// most is the limit of parts; end is called after the last of them.
	most   int32
	end    context.CancelFunc
	begun  atomic.Int32
	copied atomic.Int32
	ended  chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (c *copyist) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Copy-Source") == "" {
		return c.RoundTripper.RoundTrip(r)
	}
	if c.begun.Add(1) > c.most {
		<-c.ended
		return nil, r.Context().Err()
	}
	answer, err := c.RoundTripper.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if err == nil && c.copied.Add(1) == c.most {
		c.end()
		close(c.ended)
	}
	return answer, err
}

// big is a store with an object in Uploads that is copied in parts.
type big struct {
	*testing.T
	ours, workers r2.Config
	key           string
}

func newBig(t *testing.T) big {
	t.Helper()
	b := big{T: t, key: "exports/t1/big"}
	b.ours, b.workers = setup(t)
	return b
}

// put uploads an object of one repeated letter and returns its ETag.
func (b big) put(letter string) string {
	b.Helper()
	uploader, err := r2.NewUploader(b.workers)
	if err != nil {
		b.Fatal(err)
	}
	const size = bigParts*smallestPart - 1000
	if err := uploader.Upload(b.Context(), b.key, strings.NewReader(strings.Repeat(letter, size)), size, "text/plain"); err != nil {
		b.Fatal(err)
	}
	there, err := outputs(b.T, b.ours).Head(b.Context(), port.Uploads, b.key)
	if err != nil {
		b.Fatal(err)
	}
	return there.ETag
}

// keep copies the object until that many parts are copied. It returns their number.
func (b big) keep(etag string, most int32) (copied int32, err error) {
	b.Helper()
	ctx, end := context.WithCancel(b.Context())
	defer end()
	c := &copyist{RoundTripper: b.ours.HTTP.Transport, most: most, end: end, ended: make(chan struct{})}
	cfg := b.ours
	cfg.HTTP = &http.Client{Transport: c}
	_, err = outputs(b.T, cfg).Accept(ctx, b.key, etag)
	return c.copied.Load(), err
}

// accepted checks that the bucket Accepted contains only the object of the letter.
func (b big) accepted(letter string) {
	b.Helper()
	body, object, err := outputs(b.T, b.ours).Open(b.Context(), port.Accepted, b.key, port.Span{})
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		b.Fatal(err)
	}
	if object.ContentType != "text/plain" || int64(len(text)) != object.Size || strings.Trim(string(text), letter) != "" {
		b.Errorf("got %d bytes of %s, want only %q", len(text), object.ContentType, letter)
	}
	if objects, uploads := b.left(); objects != 1 || uploads != 0 {
		b.Errorf("got %d objects and %d unfinished uploads in Accepted", objects, uploads)
	}
}

// left returns the numbers of objects and uploads in the bucket Accepted.
func (b big) left() (objects, uploads int) {
	b.Helper()
	listed, err := client(b.ours).ListObjectsV2(b.Context(), &awss3.ListObjectsV2Input{Bucket: &b.ours.Accepted})
	if err != nil {
		b.Fatal(err)
	}
	begun, err := client(b.ours).ListMultipartUploads(b.Context(), &awss3.ListMultipartUploadsInput{Bucket: &b.ours.Accepted})
	if err != nil {
		b.Fatal(err)
	}
	return len(listed.Contents), len(begun.Uploads)
}

// late copies only the given number of parts.
func (b big) late(etag string, most int32) {
	b.Helper()
	if copied, err := b.keep(etag, most); copied != most || !fault.Is(err, fault.Unavailable) {
		b.Fatalf("with a limit of %d parts: got %d parts, %v", most, copied, err)
	}
	if _, err := outputs(b.T, b.ours).Head(b.Context(), port.Accepted, b.key); !errors.Is(err, port.ErrNotFound) {
		b.Fatalf("incomplete copy: got %v, want ErrNotFound", err)
	}
}

func TestCopyResumes(t *testing.T) {
	t.Parallel()
	b := newBig(t)
	etag := b.put("a")
	b.late(etag, 1)
	b.late(etag, 2)
	if copied, err := b.keep(etag, bigParts+1); copied != 1 || err != nil {
		t.Errorf("last call: got %d copied parts, want 1: %v", copied, err)
	}
	b.accepted("a")
}

// TestCopyOfALongKeyResumes checks that the key of the note has at most 1024 bytes, like the
// key of an object.
func TestCopyOfALongKeyResumes(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"big", ".copying", "ü"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := newBig(t)
			b.key = "exports/t1"
			for _, length := range []int{200, 200, 200, 200, 1024 - len(b.key) - 4*201 - 1} {
				b.key += "/" + strings.Repeat("ü", (length-len(end))/2) + strings.Repeat("x", (length-len(end))%2) + end
			}
			etag := b.put("a")
			b.late(etag, 3)
			if copied, err := b.keep(etag, bigParts); copied != 1 || err != nil {
				t.Errorf("last call: got %d copied parts for a key of %d bytes, want 1: %v", copied, len(b.key), err)
			}
			b.accepted("a")
		})
	}
}

// TestCopyRestartsForAnotherObject checks that parts of a replaced object are not used.
// Rule 14 of shared/README.md.
func TestCopyRestartsForAnotherObject(t *testing.T) {
	t.Parallel()
	b := newBig(t)
	b.late(b.put("a"), 2)
	etag := b.put("b")
	if copied, err := b.keep(etag, bigParts+1); copied != bigParts || err != nil {
		t.Errorf("got %d copied parts of the new object: %v", copied, err)
	}
	b.accepted("b")
}

func TestCopyRestartsWithoutItsUpload(t *testing.T) {
	t.Parallel()
	b := newBig(t)
	etag := b.put("a")
	b.late(etag, 2)
	begun, err := client(b.ours).ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: &b.ours.Accepted})
	if err != nil || len(begun.Uploads) != 1 {
		t.Fatalf("got %d unfinished copies: %v", len(begun.Uploads), err)
	}
	_, err = client(b.ours).AbortMultipartUpload(t.Context(), &awss3.AbortMultipartUploadInput{
		Bucket: &b.ours.Accepted, Key: aws.String(b.key), UploadId: begun.Uploads[0].UploadId,
	})
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := b.keep(etag, bigParts+1); copied != bigParts || err != nil {
		t.Errorf("got %d copied parts: %v", copied, err)
	}
	b.accepted("a")
}

// TestDeletePrefixAbortsCopies cancels the run during a copy.
func TestDeletePrefixAbortsCopies(t *testing.T) {
	t.Parallel()
	b := newBig(t)
	b.late(b.put("a"), 2)
	if err := outputs(t, b.ours).DeletePrefix(t.Context(), port.Accepted, "exports/t1/"); err != nil {
		t.Fatal(err)
	}
	if objects, uploads := b.left(); objects+uploads != 0 {
		t.Errorf("got %d objects and %d unfinished uploads, want none", objects, uploads)
	}
}
