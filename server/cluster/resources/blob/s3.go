package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
)

// S3Config says where a bucket is.
type S3Config struct {
	Endpoint  string // https://s3.eu-central-1.amazonaws.com, or http://… in a network that you trust
	Bucket    string
	Prefix    string // of the names of objects: letters, digits, '.', '_', '-' and '/'; may be empty
	Region    string // empty: the service is asked
	AccessKey string
	SecretKey string
	Key       *secret.Key
	Spool     string            // folder where contents wait, sealed, until they are sent
	Transport http.RoundTripper // nil: a usual one
}

// S3 keeps contents in a bucket of an S3-compatible service: the content abc… in the object PREFIX/abc….
type S3 struct {
	c      S3Config
	client *minio.Client
}

var _ Store = (*S3)(nil)

// NewS3 returns the store in a bucket. It does not connect.
func NewS3(c S3Config) (*S3, error) {
	const op = "blob.NewS3"
	if c.Key == nil || c.Spool == "" {
		return nil, errors.New("blob.NewS3: the key or the folder is missing")
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(op, fault.Invalid, "the address of the S3 service is not right").
			Hint("give it as https://HOST or https://HOST:PORT, without the name of the bucket")
	}
	if c.Bucket == "" || c.AccessKey == "" || c.SecretKey == "" {
		return nil, fault.New(op, fault.Invalid,
			"the bucket, the access key or the secret key of the S3 service is missing")
	}
	if c.Prefix = strings.Trim(c.Prefix, "/"); c.Prefix != "" {
		c.Prefix += "/"
	}
	s := &S3{c: c}
	s.client, err = minio.New(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""),
		Secure: u.Scheme == "https", Region: c.Region, Transport: c.Transport, MaxRetries: 4,
	})
	if err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err).Say("the S3 service cannot be used")
	}
	return s, nil
}

func (s *S3) object(hash string) string { return s.c.Prefix + hash }

// Put seals the content into a local file, whose hash and size are then known, and sends it as one object.
func (s *S3) Put(ctx context.Context, r io.Reader) (string, int64, error) {
	const op = "blob.Put"
	f, hash, size, err := spool(ctx, s.c.Key, s.c.Spool, r)
	if err != nil {
		return "", 0, err
	}
	defer discard(f)
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", 0, fault.Disk(op, f.Name(), err)
	}
	// In one piece: a broken upload in several pieces would leave pieces, which cost money and do not appear in lists.
	_, err = s.client.PutObject(ctx, s.c.Bucket, s.object(hash), f, info.Size(), minio.PutObjectOptions{
		ContentType: "application/octet-stream", DisableMultipart: true,
	})
	if err != nil {
		return "", 0, s.fault(op, hash, err)
	}
	return hash, size, nil
}

// Open returns a content.
func (s *S3) Open(ctx context.Context, hash string) (Content, error) {
	const op = "blob.Open"
	if err := check(op, hash); err != nil {
		return Content{}, err
	}
	object, err := s.client.GetObject(ctx, s.c.Bucket, s.object(hash), minio.GetObjectOptions{})
	if err != nil {
		return Content{}, s.fault(op, hash, err)
	}
	return open(s.c.Key, hash, &s3Reader{Object: object, s: s, hash: hash}) // asks the service with the first Read
}

// s3Reader turns errors of the service into faults.
type s3Reader struct {
	*minio.Object
	s    *S3
	hash string
}

func (r *s3Reader) Read(p []byte) (int, error) {
	n, err := r.Object.Read(p)
	if err != nil && err != io.EOF {
		err = r.s.fault("blob.Read", r.hash, err)
	}
	return n, err
}

// Stat describes a content.
func (s *S3) Stat(ctx context.Context, hash string) (Info, error) {
	const op = "blob.Stat"
	if err := check(op, hash); err != nil {
		return Info{}, err
	}
	info, err := s.client.StatObject(ctx, s.c.Bucket, s.object(hash), minio.StatObjectOptions{})
	if err != nil {
		return Info{}, s.fault(op, hash, err)
	}
	return Info{Hash: hash, Stored: info.Size, Modified: info.LastModified}, nil
}

// Delete removes a content.
func (s *S3) Delete(ctx context.Context, hash string) error {
	const op = "blob.Delete"
	if err := check(op, hash); err != nil {
		return err
	}
	err := s.client.RemoveObject(ctx, s.c.Bucket, s.object(hash), minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return s.fault(op, hash, err)
	}
	return nil
}

// List calls f for every content.
func (s *S3) List(ctx context.Context, f func(Info) error) error {
	ctx, cancel := context.WithCancel(ctx) // ends the listing when f fails
	defer cancel()
	for object := range s.client.ListObjectsIter(ctx, s.c.Bucket, minio.ListObjectsOptions{Prefix: s.c.Prefix}) {
		if object.Err != nil {
			return s.fault("blob.List", "", object.Err)
		}
		hash := strings.TrimPrefix(object.Key, s.c.Prefix)
		if !IsHash(hash) {
			continue
		}
		if err := f(Info{Hash: hash, Stored: object.Size, Modified: object.LastModified}); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes what broken calls of Put left in the spool.
func (s *S3) Sweep(_ context.Context, before time.Time) error { return sweep(s.c.Spool, before) }

// fault says what went wrong with the service. Its answers have no secrets: the secret key is never sent.
func (s *S3) fault(op, hash string, err error) error {
	answer := minio.ToErrorResponse(err)
	where := fmt.Sprintf("the bucket %s at %s", s.c.Bucket, s.c.Endpoint)
	switch {
	case answer.Code == minio.NoSuchBucket:
		return fault.New(op, fault.Unavailable, "there is no "+strings.TrimPrefix(where, "the ")).
			Hint("make the bucket, or correct [cluster] s3-bucket")
	case answer.Code == minio.NoSuchKey, answer.StatusCode == http.StatusNotFound:
		return notFound(op, hash)
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return fault.Wrap(op, fault.Unavailable, err).Say(where + " refuses the server").
			Hint("check [cluster] s3-access-key-file and s3-secret-key-file; the key must be allowed to list the " +
				"bucket, and to get, put and delete its objects")
	case answer.Code == "PermanentRedirect", answer.Code == "AuthorizationHeaderMalformed":
		return fault.Wrap(op, fault.Unavailable, err).Say(where + " is in another region").
			Hint("correct [cluster] s3-region and s3-endpoint")
	}
	return fault.Wrap(op, fault.Unavailable, err).Say(where + " cannot be used").
		Hint("check [cluster] s3-endpoint, and whether the service runs; then try again")
}
