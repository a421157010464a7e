package s3

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// content is the body of an object or a part.
type content struct {
	body   io.Reader
	length int64
}

// content returns the body of an object or a part. Reading it returns an error if the body does
// not match its checksums.
func (r *request) content() (content, error) {
	length := r.Get("X-Amz-Decoded-Content-Length", r.Get(fiber.HeaderContentLength, "0"))
	n, err := strconv.ParseInt(length, 10, 64)
	if err != nil {
		return content{}, s3err.GetAPIError(s3err.ErrInvalidRequest)
	}
	body, err := r.digested(r.body)
	if err != nil {
		return content{}, err
	}
	_, sums, err := utils.ParseChecksumHeadersAndSdkAlgo(r.Ctx)
	if err != nil {
		return content{}, err
	}
	for algorithm, sum := range sums {
		if sum == "" {
			continue
		}
		if body, err = utils.NewHashReader(body, sum, utils.HashType(strings.ToLower(string(algorithm)))); err != nil {
			return content{}, err
		}
	}
	return content{body, n}, nil
}

// digested returns a body that ends with an error if it does not match the header Content-MD5.
func (r *request) digested(body io.Reader) (io.Reader, error) {
	header := r.Request().Header.Peek("Content-Md5")
	if header == nil {
		return body, nil
	}
	if sum, err := base64.StdEncoding.DecodeString(string(header)); err != nil || len(sum) != 16 {
		return nil, s3err.GetInvalidDigestErr(string(header))
	}
	return utils.NewHashReader(body, string(header), utils.HashTypeContentMD5)
}

// digest verifies the whole body against its required checksums.
func (r *request) digest() error {
	if len(r.whole) == 0 {
		return s3err.GetAPIError(s3err.ErrMissingRequestBody)
	}
	var none types.ChecksumAlgorithm
	algorithm, sums, err := utils.ParseChecksumHeadersAndSdkAlgo(r.Ctx)
	if err != nil {
		return err
	}
	if algorithm == none && r.Request().Header.Peek("Content-Md5") == nil {
		return s3err.GetAPIError(s3err.ErrChecksumRequired)
	}
	body, err := r.digested(bytes.NewReader(r.whole))
	if err == nil && algorithm != none {
		body, err = utils.NewHashReader(body, sums[algorithm], utils.HashType(strings.ToLower(string(algorithm))))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	return err
}

// The limits for reading the rest of a body that the operation did not read.
const (
	drainSize  = 256 << 10
	drainPause = time.Second
	drainLimit = 5 * time.Second
)

// drain reads the rest of a short body, so that the client receives the answer before the
// connection ends. It closes the connection after a longer body.
func drain(ctx fiber.Ctx) {
	stream := ctx.Request().BodyStream()
	if stream == nil || ctx.Request().Header.ContentLength() <= 0 {
		return
	}
	rest := impatient{stream, ctx.RequestCtx().Conn(), clock.System{}.Now().Add(drainLimit)}
	defer func() { _ = rest.conn.SetReadDeadline(time.Time{}) }()
	if n, err := io.CopyN(io.Discard, rest, drainSize+1); n > drainSize || !errors.Is(err, io.EOF) {
		ctx.Response().Header.SetConnectionClose()
	}
}

// impatient reads from a connection with a timeout of drainPause per read. Connection deadlines
// use real time.
type impatient struct {
	from io.Reader
	conn net.Conn
	end  time.Time
}

// Read implements io.Reader.
func (i impatient) Read(p []byte) (int, error) {
	next := clock.System{}.Now().Add(drainPause)
	if next.After(i.end) {
		next = i.end
	}
	if err := i.conn.SetReadDeadline(next); err != nil {
		return 0, err
	}
	return i.from.Read(p)
}
