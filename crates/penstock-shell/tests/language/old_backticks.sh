LIST=`printf 'a=1\n# no\nb=2\n' | sed -n 's/#.*//; \
	s/[[:space:]]//g; /^[ab]=\(.*\)/ \
	{ s/.*=//; p; }' | sort`
echo $LIST
for x in `echo "one  two" \
  three`; do echo "<$x>"; done
echo "`echo "quoted \`echo inner\`"`" `echo 'a\\b'`
[ `echo 3 | wc -l` -eq 1 ] && echo $[`echo 2` * 3]
