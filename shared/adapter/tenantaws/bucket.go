package tenantaws

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Buckets = (*Client)(nil)

// Objects implements port.Buckets. Keys are transferred percent-encoded, because XML cannot have
// every character.
func (c *Client) Objects(ctx context.Context, of sensor.Bucket, by sensor.Credentials, after string) (port.ObjectPage, error) {
	base, client, done, err := c.endpoint(of.Address())
	if err != nil {
		return port.ObjectPage{}, err
	}
	defer done()
	api := s3.New(s3.Options{
		Region: of.SigningRegion(), BaseEndpoint: aws.String(base + pathOf(of.Address())), UsePathStyle: true, Credentials: credentials(by), HTTPClient: client,
		RetryMaxAttempts: tries, RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	in := &s3.ListObjectsV2Input{
		Bucket: aws.String(of.Name), MaxKeys: aws.Int32(port.MaxObjects), EncodingType: types.EncodingTypeUrl,
	}
	if of.Prefix != "" {
		in.Prefix = aws.String(of.Prefix)
	}
	if after != "" {
		in.StartAfter = aws.String(after)
	}
	out, err := api.ListObjectsV2(ctx, in)
	if err != nil {
		return port.ObjectPage{}, failed(ctx, err, base, "list the objects")
	}
	return page(out, of.Prefix, after)
}

// pathOf returns the path of an address.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// page returns the page of an answer. A store that does not respect the order or the prefix would
// make a sensor list forever.
func page(out *s3.ListObjectsV2Output, prefix, after string) (port.ObjectPage, error) {
	found := port.ObjectPage{More: aws.ToBool(out.IsTruncated), Objects: make([]sensor.Object, 0, len(out.Contents))}
	if at, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
		found.At = at.UTC().Truncate(time.Second)
	}
	last := after
	for _, o := range out.Contents {
		key := aws.ToString(o.Key)
		if out.EncodingType == types.EncodingTypeUrl {
			decoded, err := url.QueryUnescape(key)
			if err != nil {
				return port.ObjectPage{}, fault.New(fault.Unavailable, "cannot list the objects: malformed key in the answer")
			}
			key = decoded
		}
		if key <= last || !strings.HasPrefix(key, prefix) || len(key) > sensor.MaxKey || len(found.Objects) == port.MaxObjects {
			return port.ObjectPage{}, fault.New(fault.Unavailable, "cannot list the objects: keys in the answer that are not after the last one, not below the prefix, or too long")
		}
		last = key
		found.Objects = append(found.Objects, sensor.Object{
			Key: key, ETag: strings.Trim(aws.ToString(o.ETag), `"`), Size: aws.ToInt64(o.Size), ModifiedAt: aws.ToTime(o.LastModified).UTC(),
		})
	}
	found.More = found.More && len(found.Objects) > 0
	return found, nil
}
