package harness

import (
	"context"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/port"
)

// Upload implements port.Outputs.
func (b *buckets) Upload(ctx context.Context, bucket port.Bucket, key, kind string, content io.ReaderAt, size int64) error {
	text, err := io.ReadAll(io.NewSectionReader(content, 0, size))
	if err != nil {
		return fmt.Errorf("cannot read the content: %w", err)
	}
	return b.Put(ctx, bucket, key, kind, text)
}
