package ssh

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
)

// Upload unpacks what write writes in a folder of the machine. Owner is who is logged in, or root with sudo.
func (c *Client) Upload(ctx context.Context, folder string, sudo bool, write func(*tar.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.start(ctx, c.line(sudo, `exec tar -x -p -o -f - -C "$0"`, folder))
	if err != nil {
		return err
	}
	defer s.channel.Close()
	context.AfterFunc(ctx, func() { _ = s.channel.Close() })
	out := copyOutput(s, nil)
	w := tar.NewWriter(s.channel)
	wrong := write(w)
	if wrong == nil {
		wrong = w.Close()
	}
	if wrong != nil && !errors.Is(wrong, io.EOF) { // at io.EOF tar has ended, and says why
		return uploadFailed(ctx, c, wrong)
	}
	_ = s.channel.CloseWrite()
	select {
	case <-s.ended:
	case <-ctx.Done():
		return uploadFailed(ctx, c, context.Cause(ctx))
	}
	if err := s.result(c, lines(out.finish())); err != nil {
		return uploadFailed(ctx, c, err)
	}
	if wrong != nil {
		return uploadFailed(ctx, c, wrong)
	}
	return nil
}

func uploadFailed(ctx context.Context, c *Client, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fault.Wrap("ssh.Upload", fault.Unavailable, err).Say("cannot write files on " + c.address).
		Hint("check that the machine has tar, and space on its disk")
}

// AddFile writes one file to a tar stream.
func AddFile(w *tar.Writer, name string, mode fs.FileMode, content []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: int64(len(content))}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// AddPath writes a file, or a folder with all that is in it, to a tar stream under another name. Other kinds of files
// than folders, regular ones and symbolic links are an error.
func AddPath(w *tar.Writer, name, local string) error {
	return filepath.WalkDir(local, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(at)
		if at == local {
			info, err = os.Stat(at)
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(local, at)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(name, filepath.ToSlash(rel)), Mode: int64(info.Mode().Perm())}
		switch {
		case info.IsDir():
			h.Typeflag = tar.TypeDir
			return w.WriteHeader(h)
		case info.Mode()&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
			if h.Linkname, err = os.Readlink(at); err != nil {
				return err
			}
			return w.WriteHeader(h)
		case !info.Mode().IsRegular():
			return fault.New("ssh.AddPath", fault.Invalid, fmt.Sprintf("%s is neither a file nor a folder", rel))
		}
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		defer f.Close()
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.CopyN(w, f, h.Size)
		return err
	})
}
