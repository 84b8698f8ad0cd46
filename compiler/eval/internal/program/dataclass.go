package program

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/types"
)

// An entity that extends std::Dataclass has a twin in Python: a frozen dataclass of
// the same name. What a plug-in returns of that class becomes an instance of the
// entity, a new one each time.
//
// findTwin looks for the Python package in which the twin of an entity would be. As
// in the reference the package must exist, but not the class: an entity without one
// is like any other.
func (p *Program) findTwin(info *EntityInfo) *Error {
	root := p.infoOf("std::Dataclass")
	if root == nil || info == root || info.ast == nil || info.broken || !info.Entity.IsSubclassOf(root.Entity) {
		return nil
	}
	names := strings.Split(info.Namespace.Name, "::")
	for known := range names {
		if p.hasPackage(names[:known+1]) {
			continue
		}
		e := &Error{
			Kind:    "ModuleNotFoundError",
			Message: fmt.Sprintf("No module named 'inmanta_plugins.%s'", strings.Join(names[:known+1], ".")),
			Builtin: true,
			About:   &info.ast.Name.At,
		}
		e.Hint = "an entity that extends std::Dataclass needs a Python package, with a frozen dataclass of its " +
			"name: " + packageOf(names)
		return e
	}
	return p.askTwin(info)
}

// askTwin looks for the twin of an entity where Python has something else under its
// name than a class that Load reported. The reference takes whatever there is.
func (p *Program) askTwin(info *EntityInfo) *Error {
	name := info.Entity.Name
	host, can := p.in.Host.(Twins)
	if !can || p.Wrong() || slices.ContainsFunc(p.dataclasses, func(d Dataclass) bool { return d.Name == name }) {
		return nil
	}
	twin, err := host.Twin(info.Namespace.Name, info.Entity.Short())
	if err != nil {
		return loadError(err)
	}
	p.Output = append(p.Output, TakeOutput(p.in.Host)...)
	switch {
	case twin.Refused != nil:
		return p.noTwin(info, twin.Refused)
	case twin.Nameless != nil:
		p.nameless = append(p.nameless, p.noTwin(info, twin.Nameless))
	case twin.Found != nil:
		p.dataclasses = append(slices.Clone(p.dataclasses), *twin.Found)
	}
	return nil
}

// noTwin is the error for an exception about what Python has under the name of an
// entity.
func (p *Program) noTwin(info *EntityInfo, raised *PluginError) *Error {
	e := &Error{
		Kind:    strings.TrimPrefix(raised.Class, "builtins."),
		Message: raised.Message,
		Builtin: true,
		About:   &info.ast.Name.At,
	}
	return e.Hinted(
		fmt.Sprintf(
			"an entity that extends std::Dataclass needs a frozen dataclass of its name in Python: what is "+
				"called %s in %s is none",
			info.ast.Name.Name,
			packageOf(strings.Split(info.Namespace.Name, "::")),
		),
	)
}

// packageOf names the file in which the twins of a namespace's entities are.
func packageOf(names []string) string {
	if names[0] == "__config__" {
		return "move the entity to a module"
	}
	if len(names) == 1 {
		return "plugins/__init__.py of module " + names[0]
	}
	return "plugins/" + strings.Join(names[1:], "/") + ".py of module " + names[0]
}

// hasPackage reports whether a namespace has a Python module or package.
func (p *Program) hasPackage(names []string) bool {
	for _, m := range p.in.Modules {
		if m.Name != names[0] || m.Dir == "" {
			continue
		}
		path := filepath.Join(append([]string{m.Dir}, names[1:]...)...)
		return slices.ContainsFunc(m.Files, func(file string) bool {
			return len(names) > 1 && file == path+".py" || strings.HasPrefix(file, path+string(filepath.Separator))
		})
	}
	return false
}

// checkDataclasses compares the entities with their twins.
func (p *Program) checkDataclasses(*definitions) {
	std := p.Namespaces["std"]
	if std == nil {
		return
	}
	root, ok := std.Things["Dataclass"].(*EntityInfo)
	if !ok {
		return
	}
	p.report(p.nameless...)
	for i := range p.dataclasses {
		d := &p.dataclasses[i]
		prefix, last, _ := CutName(d.Name)
		space := p.Namespaces[prefix]
		if space == nil {
			continue
		}
		info, ok := space.Things[last].(*EntityInfo)
		if !ok || info == root || info.ast == nil || !info.Entity.IsSubclassOf(root.Entity) || p.unsure(info.Entity) {
			continue
		}
		if err := p.checkDataclass(info, d); err != nil {
			err.Place = &info.ast.Name.At
			p.report(err)
		}
	}
}

// mismatch is a difference between an entity and its twin: in the words of the
// reference, and in plain ones.
type mismatch struct{ message, plain string }

func (p *Program) checkDataclass(info *EntityInfo, d *Dataclass) *Error {
	e := info.Entity
	if d.Plain || !d.Frozen {
		what := "is not a dataclass"
		if !d.Plain {
			what = "is not frozen"
		}
		called := d.Name
		if d.Called != "" {
			called = info.Namespace.Name + "::" + d.Called
		}
		err := NewError(
			"DataClassMismatchException",
			"The python object inmanta_plugins.%s associated to  %s defined at %s %s. Dataclasses must have a "+
				"python counterpart that is a frozen dataclass.",
			strings.ReplaceAll(called, "::", "."),
			e.Name,
			info.ast.Name.At,
			what,
		)
		if d.Line == 0 || d.Kind != "" && d.Kind != "type" {
			return err.Hinted(
				fmt.Sprintf(
					"what is called %s in Python is of type %s: give it another name, or declare a class of that "+
						"name with @dataclass(frozen=True)",
					info.ast.Name.Name,
					d.Kind,
				),
			)
		}
		err.Hint = fmt.Sprintf("declare the class at %s:%d with @dataclass(frozen=True)", d.File, d.Line)
		return err
	}
	problems, err := p.mismatches(info, d)
	if err != nil {
		return err
	}
	if problems != nil {
		var told, plain []string
		for _, m := range problems {
			told, plain = append(told, "    -"+m.message), append(plain, m.plain)
		}
		err := NewError(
			"DataClassMismatchException",
			"The dataclass %s defined at %s does not match the corresponding python dataclass at %s:%d. %d "+
				"errors:\n%s\n",
			e.Name,
			info.ast.Name.At,
			d.File,
			d.Line,
			len(problems),
			strings.Join(told, "\n"),
		)
		err.Hint = strings.Join(plain, "; ") + ": both must have the same fields, with types that correspond"
		return err
	}
	return p.plainValue(info)
}

// mismatches returns the differences between the fields of an entity and of its
// twin, in the order of the reference: the attributes of the entity, then what only
// Python has.
func (p *Program) mismatches(info *EntityInfo, d *Dataclass) ([]mismatch, *Error) {
	e := info.Entity
	var problems []mismatch
	say := func(message, plain string, args ...any) {
		problems = append(problems, mismatch{message, fmt.Sprintf(plain, args...)})
	}
	const identical = "All attributes of a dataclasses must be identical in both the python and inmanta domain"
	fields := map[string]*DataclassField{}
	for i := range d.Fields {
		fields[d.Fields[i].Name] = &d.Fields[i]
	}
	for _, attr := range e.Attributes {
		if attr.End != nil {
			if attr.Name != "requires" && attr.Name != "provides" || attr.Entity.Name != "std::Entity" {
				say(
					fmt.Sprintf("a relation called %s is defined at %s. Dataclasses are not allowed to have relations",
						attr.Name, attr.At),
					"%s is a relation, which a dataclass cannot have",
					attr.Name,
				)
			}
			continue
		}
		f := fields[attr.Name]
		if f == nil {
			say(fmt.Sprintf("The attribute %s has no counterpart in the python domain. %s.", attr.Name, identical),
				"the attribute %s is no field of the Python class", attr.Name)
			continue
		}
		if !primitive(attr.Type) {
			say(
				fmt.Sprintf(
					"The attribute %s of type `%s` is not primitive. All attributes of a dataclasses have to be "+
						"of a primitive type.",
					attr.Name,
					attr.Type,
				),
				"the attribute %s is of type %s: a dataclass has primitive types only",
				attr.Name,
				attr.Type,
			)
			continue
		}
		delete(fields, attr.Name)
		other := fmt.Sprintf(
			"The attribute %s does not have the same type as the associated field in the python domain. %s.",
			attr.Name,
			identical,
		)
		if f.Type.Kind == "unfit" && f.Type.Name == "TypeError" { // Python itself raises it in the reference
			e := &Error{Kind: "TypeError", Message: f.Type.Text, Builtin: true, About: &info.ast.Name.At}
			return nil, e.Hinted(
				"the field " + f.Name + " of the Python class at " + d.File + " cannot have such a type",
			)
		}
		if f.Type.Kind == "unfit" {
			say(other, "the field %s of the Python class: %s", f.Name, f.Type.Text)
			continue
		}
		t, err := p.annotation(info.Namespace, f.Type)
		if err != nil {
			return nil, err
		}
		e.Twin = append(e.Twin, types.Field{Name: f.Name, Type: t})
		if t != nil && !corresponds(attr.Type, t) {
			say(other, "the attribute %s is of type %s here and of type %s in Python", f.Name, attr.Type, t)
		}
	}
	for _, f := range d.Fields {
		if fields[f.Name] != nil {
			say(fmt.Sprintf("The field %s doesn't exist in the inmanta domain. %s", f.Name, identical),
				"the field %s of the Python class is no attribute of the entity", f.Name)
		}
	}
	return problems, nil
}

// primitive reports whether a dataclass may have an attribute of a type, which must
// be no typedef.
func primitive(t types.Type) bool {
	switch t := t.(type) {
	case types.Optional:
		return primitive(t.Of)
	case types.ListOf:
		return primitive(t.Of)
	case *types.Typedef:
		return false
	}
	return true
}

// plainValue returns an error when an entity has something that a dataclass may not
// have.
func (p *Program) plainValue(info *EntityInfo) *Error {
	e, at := info.Entity, info.ast.Name.At
	var err *Error
	for _, im := range info.implDefs {
		for _, name := range im.ast.Using {
			if err == nil && name.Text != "std::none" && !(name.Text == "none" && im.ns.Name == "std") {
				err = NewError(
					"DataClassException",
					"The dataclass %s defined at %s has an implementation other than 'std::none', defined at %s. "+
						"Dataclasses can only have std::none as implemenation.",
					e.Name,
					at,
					im.ast.Entity.At,
				)
			}
		}
	}
	if err == nil && len(e.Indexes) > 0 {
		var places []string
		for _, x := range e.Indexes {
			if x.Entity == e {
				places = append(places, Short(&x.At))
			}
		}
		err = NewError("DataClassException",
			"The dataclass %s defined at %s has an indexes defined at %s. Dataclasses can not have any indexes.",
			e.Name, at, strings.Join(places, ","))
	}
	if err != nil {
		err.Hint = "a dataclass is a plain value: take that away, or do not extend std::Dataclass"
	}
	return err
}

// corresponds reports whether an attribute takes all values that a field of the
// Python class may have.
func corresponds(attr, field types.Type) bool {
	if field == nil || field == types.Any {
		return true
	}
	if either, is := field.(types.OrReference); is {
		field = either.Of
	}
	switch a := attr.(type) {
	case types.Optional:
		f, nullable := field.(types.Optional)
		_, referred := f.Of.(types.OrReference)
		return nullable && !referred && corresponds(a.Of, f.Of)
	case types.ListOf:
		f, is := field.(types.ListOf)
		return is && (loose(a.Of) || corresponds(a.Of, f.Of))
	}
	switch f := field.(type) {
	case types.ListOf:
		return attr.String() == "list"
	case types.DictOf:
		return attr.String() == "dict" || attr.String() == f.String()
	case types.Primitive:
		return attr == field || (attr == types.Number && (f == types.IntType || f == types.FloatT))
	}
	return false
}

// loose reports whether a type is that of the elements of a `list`.
func loose(t types.Type) bool { return t == types.Any || t == types.Literal }

// TwinOf returns the entity whose twin is a Python class; nil when there is none.
func (p *Program) TwinOf(class string) *EntityInfo {
	if p.twins == nil {
		p.twins = map[string]*EntityInfo{}
		root := p.infoOf("std::Dataclass")
		for _, d := range p.dataclasses {
			if info := p.infoOf(d.Name); d.Class != "" && root != nil && info != nil && info != root &&
				info.Entity.IsSubclassOf(root.Entity) {
				p.twins[d.Class] = info
			}
		}
	}
	return p.twins[class]
}
