package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"

	"ordain.dev/ordain/internal/fault"
)

// walk calls visit for every entry that the rules admit, with the content of files, which it reads to the end in any
// case: sizes that an archive declares prove nothing.
func walk(r io.Reader, rules *rules, visit func(entry, io.Reader) error) error {
	packed := &budget{r: r, left: rules.limits.Packed, err: fault.New("archive.Check", fault.Exhausted,
		"the archive is too large").Hint("put large files where the machines can download them")}
	buffered := bufio.NewReaderSize(packed, 64<<10)
	begin, err := buffered.Peek(512)
	if err != nil && err != io.EOF {
		return damaged(err)
	}
	switch {
	case bytes.HasPrefix(begin, []byte("PK")):
		err = walkZip(buffered, rules, visit)
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		err = walkGzip(buffered, rules, visit)
	case len(begin) == 512 && (string(begin[257:262]) == "ustar" || isOldTar(begin)):
		err = walkTar(buffered, rules, visit)
	default:
		return invalid("this is not an archive that can be used").Hint("upload a tar, tar.gz or zip file")
	}
	if err != nil {
		return damaged(err)
	}
	return rules.complete()
}

// isOldTar reports whether a block is the header of a tar file from before POSIX, or the end of an empty one.
func isOldTar(block []byte) bool {
	if bytes.Equal(block, make([]byte, len(block))) {
		return true
	}
	_, err := tar.NewReader(bytes.NewReader(block)).Next()
	return err == nil
}

// damaged turns an error of a decoder into a fault. Faults stay as they are.
func damaged(err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	return fault.Wrap("archive.Check", fault.Invalid, err).Say("the archive is damaged").Hint("make it again")
}

func walkGzip(r io.Reader, rules *rules, visit func(entry, io.Reader) error) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	if err := walkTar(unpacked, rules, visit); err != nil {
		return err
	}
	// The check sum is at the end. There may be padding before it, and it is not for free either.
	rest := &budget{r: unpacked, left: 1 << 20, err: invalid("the archive has other data behind its end")}
	_, err = io.Copy(io.Discard, rest)
	return err
}

func walkTar(r io.Reader, rules *rules, visit func(entry, io.Reader) error) error {
	// What is between the contents has a bound, too: headers, and their extensions of up to 1 MiB each.
	overhead := int64(rules.limits.Entries)*4096 + 16<<20
	stream := tar.NewReader(&budget{r: r, left: rules.limits.Unpacked + overhead, err: fault.New("archive.Check",
		fault.Exhausted, "the archive is too large when it is unpacked")})
	for {
		header, err := stream.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		e := entry{program: header.Mode&0o111 != 0}
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse:
		case tar.TypeDir:
			e.kind = folder
		case tar.TypeSymlink:
			e.kind, e.target = link, header.Linkname
		case tar.TypeXGlobalHeader: // git archive writes one
			continue
		case tar.TypeLink:
			return invalid("the archive has the hard link %s", shown(header.Name)).
				Hint("make the archive with tar --hard-dereference")
		default:
			return invalid(
				"the archive has %s, which is neither a file, a folder nor a symbolic link",
				shown(header.Name),
			)
		}
		if err := pass(rules, header.Name, e, stream, visit); err != nil {
			return err
		}
	}
}

// directoryMax bounds the directory of a zip file, which is read into memory.
const directoryMax = 8 << 20

// walkZip needs the whole file, because the directory of a zip is at its end.
func walkZip(r io.Reader, rules *rules, visit func(entry, io.Reader) error) error {
	spool, err := os.CreateTemp("", "ordain-archive-")
	if err != nil {
		return fault.Disk("archive.Check", os.TempDir(), err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	from := &source{r: r}
	size, err := io.Copy(spool, from)
	if from.err != nil {
		return from.err
	}
	if err != nil {
		return fault.Disk("archive.Check", spool.Name(), err)
	}
	directory := &budgetAt{r: spool, left: directoryMax}
	archive, err := zip.NewReader(directory, size)
	if err != nil {
		return err
	}
	directory.left = -1 // contents are bounded by the rules
	for _, f := range archive.File {
		mode := f.Mode()
		e := entry{program: mode&0o111 != 0}
		switch {
		case mode.IsDir():
			e.kind = folder
		case mode&os.ModeSymlink != 0:
			e.kind = link
		case !mode.IsRegular():
			return invalid("the archive has %s, which is neither a file, a folder nor a symbolic link", shown(f.Name))
		}
		if err := passZip(rules, f, e, visit); err != nil {
			return err
		}
	}
	return nil
}

func passZip(rules *rules, f *zip.File, e entry, visit func(entry, io.Reader) error) error {
	content, err := f.Open()
	if err != nil {
		if errors.Is(err, zip.ErrAlgorithm) {
			return invalid("the archive has %s in a compression that cannot be read", shown(f.Name)).Hint("use deflate")
		}
		return err
	}
	defer content.Close()
	if e.kind == link { // the content is the target
		target, err := io.ReadAll(io.LimitReader(content, maxPath+1))
		if err != nil {
			return err
		}
		e.target = string(target)
		return pass(rules, f.Name, e, bytes.NewReader(nil), visit)
	}
	return pass(rules, f.Name, e, content, visit)
}

// pass checks one entry, visits it and reads the rest of its content.
func pass(rules *rules, name string, e entry, content io.Reader, visit func(entry, io.Reader) error) error {
	e, skip, err := rules.admit(name, e)
	if err != nil || skip {
		return err
	}
	counted := &counter{r: content, rules: rules}
	if err := visit(e, counted); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, counted)
	return err
}

// counter charges what is read of contents to the rules.
type counter struct {
	r     io.Reader
	rules *rules
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if over := c.rules.spend(n); over != nil {
		return 0, over
	}
	return n, err
}

// budget fails after so many bytes.
type budget struct {
	r    io.Reader
	left int64
	err  error
}

func (b *budget) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.err
	}
	return n, err
}

// budgetAt fails after so many bytes; a negative budget has no end.
type budgetAt struct {
	r    io.ReaderAt
	left int64
}

func (b *budgetAt) ReadAt(p []byte, offset int64) (int, error) {
	n, err := b.r.ReadAt(p, offset)
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			b.left = 0
			return 0, fault.New("archive.Check", fault.Exhausted, "the directory of the zip file is too large")
		}
	}
	return n, err
}
