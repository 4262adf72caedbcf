from pep_variants.errors import fault_report


def test_report():
    """What an error quotes neither acts on a terminal nor shows a secret."""
    try:
        raise ValueError(
            "a\x1b]0;title\x07b\u202ec\r at https://user:SECRET@host/?token=SECRET\nend"
        )
    except ValueError as error:
        report = fault_report("variants", error)
    lines = report.split("\n")
    assert all(line.isprintable() for line in lines)
    assert "SECRET" not in report
    assert lines[0] == "Traceback (most recent call last):"
    assert "ValueError: a?]0;title?b?c? at https://****@host/?****" in lines
    assert lines[-1].startswith("variants: internal error: ValueError: a?]0;title?b?c at https://")
