package s3

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

const (
	// maxBody limits the body of an object or a part: 5 GiB, as in S3 and R2.
	maxBody = 5 << 30
	// maxDocument limits a body that is read into memory as a whole. It is larger than a list
	// of 1,000 long keys or of 10,000 parts.
	maxDocument = 8 << 20
)

// defaultRegion is the region of a signature from a client that lists buckets without a
// configured region.
const defaultRegion = "us-east-1"

// signedTime is the format of X-Amz-Date.
const signedTime = "20060102T150405Z"

// contentHash is the header with the hash of the body, or with the way in which it is signed.
const contentHash = "X-Amz-Content-Sha256"

// accounts are the two accounts.
type accounts struct{ owner, worker Keys }

// identity is the account that signed a request.
type identity struct {
	id    string
	owner bool
}

// find returns the account with the id and its signing key for the day and region;
// InvalidAccessKeyId for an unknown id.
func (a accounts) find(id, day, region string) (identity, []byte, error) {
	var secret string
	switch id {
	case a.owner.ID:
		secret = a.owner.Secret
	case a.worker.ID:
		secret = a.worker.Secret
	default:
		return identity{}, nil, s3err.GetInvalidAccessKeyIdErr(id)
	}
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, "s3", "aws4_request"} {
		hash := hmac.New(sha256.New, key)
		hash.Write([]byte(part))
		key = hash.Sum(nil)
	}
	return identity{id, id == a.owner.ID}, key, nil
}

// authenticate verifies the signature of a request and sets its account and body. If the
// operation does not stream, it reads and verifies the whole body.
func (f *front) authenticate(r *request, streams bool) error {
	body := r.Request().BodyStream()
	if body == nil {
		body = bytes.NewReader(nil)
	}
	var err error
	switch {
	case utils.IsPresignedURLAuthV2(r.Ctx):
		return s3err.GetAPIError(s3err.ErrUnsupportedAuthorizationMechanism)
	case utils.IsPresignedURLAuth(r.Ctx):
		body, err = f.presigned(r, body, streams)
	case r.Get(fiber.HeaderAuthorization) == "":
		return s3err.GetAPIError(s3err.ErrAccessDenied)
	default:
		body, err = f.signed(r, body, streams)
	}
	if err != nil {
		return err
	}
	if r.body = body; streams {
		return nil
	}
	if r.whole, err = io.ReadAll(io.LimitReader(body, maxDocument+1)); err == nil && len(r.whole) > maxDocument {
		err = s3err.GetEntityTooLargeErr(int64(len(r.whole)), maxDocument)
	}
	return err
}

// presigned verifies the signature of a presigned URL, which does not cover the body.
func (f *front) presigned(r *request, body io.Reader, streams bool) (io.Reader, error) {
	given, err := utils.ParsePresignedURIParts(r.Ctx, Region)
	if err != nil {
		return nil, err
	}
	by, key, err := f.accounts.find(given.Access, given.Date[:8], Region)
	if err != nil {
		return nil, err
	}
	if err := utils.CheckPresignedSignature(r.Ctx, given, key); err != nil {
		return nil, err
	}
	r.by = by
	if _, err := bodyLength(r, streams); err != nil {
		return nil, err
	}
	return body, nil
}

// signed verifies the signature in the headers of a request. The returned body ends with an
// error if it does not match the signature.
func (f *front) signed(r *request, body io.Reader, streams bool) (io.Reader, error) {
	date := r.Get("X-Amz-Date", r.Get(fiber.HeaderDate))
	at, err := time.Parse(signedTime, date)
	if err != nil {
		return nil, s3err.GetAPIError(s3err.ErrMissingDateHeader)
	}
	if err := utils.ValidateDate(at); err != nil {
		return nil, err
	}
	given, err := utils.ParseAuthorization(r.Get(fiber.HeaderAuthorization))
	if err != nil {
		return nil, err
	}
	if given.Region != Region && (r.bucket != "" || given.Region != defaultRegion) {
		return nil, s3err.MalformedAuth.IncorrectRegion(Region, given.Region)
	}
	by, key, err := f.accounts.find(given.Access, given.Date, given.Region)
	if err != nil {
		return nil, err
	}
	if date[:8] != given.Date {
		return nil, s3err.MalformedAuth.DateMismatch()
	}
	hash, err := signedHash(r, streams)
	if err != nil {
		return nil, err
	}
	chunked := utils.IsStreamingPayload(hash)
	length, err := bodyLength(r, streams && !chunked)
	if err != nil {
		return nil, err
	}
	canonical, err := utils.CheckValidSignature(r.Ctx, given, key, hash, at, length)
	if err != nil {
		return nil, err
	}
	r.by = by
	switch {
	case chunked:
		return utils.NewChunkReader(r.Ctx, body, given, canonical, key, at)
	case utils.IsSpecialPayload(hash):
		return body, nil
	}
	return utils.NewHashReader(body, hash, utils.HashTypeSha256Hex)
}

// signedHash returns the header contentHash, or an error if it is missing or invalid.
func signedHash(r *request, streams bool) (string, error) {
	hash := r.Get(contentHash)
	switch {
	case hash == "":
		return "", s3err.GetAPIError(s3err.ErrMissingContentSha256)
	case !utils.IsValidSha256PayloadHeader(hash):
		return "", s3err.GetInvalidArgumentErr(s3err.InvalidArgSHA256Payload, hash)
	case !streams && utils.IsStreamingPayload(hash):
		return "", s3err.GetAPIError(s3err.ErrInvalidSHA256PayloadUsage)
	}
	return hash, nil
}

// bodyLength returns the header Content-Length, which is required for an upload.
func bodyLength(r *request, upload bool) (int64, error) {
	text := r.Get(fiber.HeaderContentLength)
	if text == "" && upload {
		return 0, s3err.GetAPIError(s3err.ErrMissingContentLength)
	}
	if text == "" {
		return 0, nil
	}
	length, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, s3err.GetAPIError(s3err.ErrInvalidRequest)
	case upload && length > maxBody:
		return 0, s3err.GetEntityTooLargeErr(length, maxBody)
	}
	return length, nil
}
