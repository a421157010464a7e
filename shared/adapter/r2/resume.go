package r2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/port"
)

// copiesInFlight is the number of concurrent part copies. Their bytes do not leave the store.
const copiesInFlight = 16

// note describes an incomplete copy in parts. It is stored beside its object in the bucket
// Accepted, which workers cannot write. An upload does not report the source of its parts.
// Without the note, parts of two objects could form one that was never accepted.
type note struct {
	Upload string `json:"upload"`
	// ETag is the ETag of the copied object. Part is the size of a part.
	ETag string `json:"etag"`
	Part int64  `json:"part"`
}

// noteLimit is far above the size of a note, in bytes.
const noteLimit = 4 << 10

// noteKey returns the key of the note about an object. It has the prefix of the object's task,
// and is never the key of an object.
func noteKey(key string) string {
	const copying = ".copying"
	if len(key)+len(copying) > maxKey {
		key = strings.ToValidUTF8(key[:maxKey-2*len(copying)], "") // shorter than the key, with its end
	}
	return key + copying
}

// acceptInParts copies an object that is too large for one call. After a timeout or an outage
// the copy is kept for the next call. If the store refuses the copy, it is aborted.
func (o *Outputs) acceptInParts(ctx context.Context, source port.Object) error {
	t := transfer{s3: o.s3, bucket: o.accepted, key: source.Key, contentType: source.ContentType, inFlight: copiesInFlight}
	n, there, err := o.resume(ctx, t, note{ETag: source.ETag, Part: max(o.copyLimit, (source.Size+maxParts-1)/maxParts)})
	if err != nil {
		return err
	}
	err = t.finish(ctx, n.Upload, source.Size, n.Part, there, func(ctx context.Context, part part) (*string, error) {
		copied, err := o.s3.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
			Bucket: &o.accepted, Key: &source.Key, UploadId: &part.upload, PartNumber: &part.number,
			CopySource: o.source(source.Key), CopySourceIfMatch: &source.ETag,
			CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", part.offset, part.offset+part.size-1)),
		})
		if err != nil {
			return nil, named(err, "copy an output")
		}
		return copied.CopyPartResult.ETag, nil
	})
	if err != nil && !refused(err) {
		return err
	}
	if err != nil {
		t.abort(ctx, n.Upload)
	}
	// If the note cannot be deleted, it names an upload that no longer exists. The bucket's
	// lifecycle rule deletes the note.
	_ = o.delete(ctx, &o.accepted, noteKey(source.Key))
	return err
}

// refused reports whether the store would refuse the copy again, because the object was deleted
// or replaced, or the upload was aborted.
func refused(err error) bool {
	told := status(err)
	return errors.Is(err, port.ErrChanged) || errors.Is(err, port.ErrNotFound) ||
		told >= http.StatusBadRequest && told < http.StatusInternalServerError && told != http.StatusTooManyRequests
}

// resume returns the upload of an earlier call for the same copy, and its parts by number.
// Without one it starts an upload.
func (o *Outputs) resume(ctx context.Context, t transfer, wanted note) (begun note, there map[int32]*string, err error) {
	if begun, err = o.readNote(ctx, t.key); err != nil {
		return begun, nil, err
	}
	if begun.ETag == wanted.ETag && begun.Part == wanted.Part {
		if there, err = o.copied(ctx, t.key, begun.Upload); code(err) != "NoSuchUpload" {
			return begun, there, err
		}
	} else if begun.Upload != "" {
		t.abort(ctx, begun.Upload)
	}
	if wanted.Upload, err = t.begin(ctx); err != nil {
		return wanted, nil, err
	}
	text, err := json.Marshal(wanted)
	if err == nil {
		err = o.Put(ctx, port.Accepted, noteKey(t.key), "application/json", text)
	}
	if err != nil {
		t.abort(ctx, wanted.Upload)
	}
	return wanted, nil, err
}

// readNote returns the note of a copy, or an empty note if it does not exist.
func (o *Outputs) readNote(ctx context.Context, key string) (note, error) {
	body, _, err := o.Open(ctx, port.Accepted, noteKey(key), port.Span{Length: noteLimit})
	if err != nil {
		return note{}, gone(err)
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(body)
	var n note
	if err = errors.Join(err, body.Close()); err == nil && json.Unmarshal(text.Bytes(), &n) != nil {
		n = note{} // not a note: it is replaced
	}
	return n, err
}

// copied lists the parts of an upload.
func (o *Outputs) copied(ctx context.Context, key, upload string) (map[int32]*string, error) {
	there := map[int32]*string{}
	pages := s3.NewListPartsPaginator(o.s3, &s3.ListPartsInput{Bucket: &o.accepted, Key: &key, UploadId: &upload})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, named(err, "list the parts of an upload")
		}
		for _, p := range page.Parts {
			there[aws.ToInt32(p.PartNumber)] = p.ETag
		}
	}
	return there, nil
}
